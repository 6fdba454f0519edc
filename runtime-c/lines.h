/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Source lines of addresses, where the script brings the tables for it
 * (spile_script.lines; compiler/src/debuginfo/line_table.rs makes them). Any
 * context; bounded by the tables' depth.
 */
#ifndef SPILE_LINES_H
#define SPILE_LINES_H

#include <linux/types.h>

struct spile_context;

struct spile_line {
	const char *file;
	unsigned int line;
};

/* False where no line is known. */
bool spile_line_find(struct spile_context *c, unsigned long address, struct spile_line *line);

#endif
