/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Source lines of addresses, from the tables in the script (spile_script.lines;
 * compiler/debuginfo/src/line_table.rs writes them). Any context; bounded by the tables' depth.
 */
#ifndef SPILE_LINES_H
#define SPILE_LINES_H

#include <linux/types.h>

struct spile_line {
	const char *file;
	unsigned int line;
};

/*
 * Both return false if no line is known. `text`: the address as spile_symbol_text()
 * writes it.
 */
bool spile_line_in_kernel(unsigned long address, struct spile_line *line);
bool spile_line_in_module(const char *text, struct spile_line *line);

#endif
