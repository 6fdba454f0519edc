/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compares build-ids in memory with those that the script was compiled for. */
#ifndef SPILE_BUILD_ID_H
#define SPILE_BUILD_ID_H

#include <linux/types.h>

#include "script.h"

enum {
	SPILE_BUILD_ID_MAX = 20,		/* bytes: SHA-1, what linkers make by default */
	SPILE_BUILD_ID_TEXT = 2 * SPILE_BUILD_ID_MAX + 1,
};

/* Hex digits and NUL into text (SPILE_BUILD_ID_TEXT bytes); returns text. "none" for no bytes. */
char *spile_build_id_text(char *text, const unsigned char *id, unsigned int bytes);

/*
 * Looks for a build-id among the GNU build-id notes in read-only
 * memory [start, start + bytes). True if it is there. If not, the last other
 * one found is copied to found (SPILE_BUILD_ID_MAX bytes) and *found_bytes set.
 */
bool spile_build_id_scan(const unsigned char *id, unsigned int id_bytes, const void *start,
			 size_t bytes, unsigned char *found, unsigned int *found_bytes);

#endif
