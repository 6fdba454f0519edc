/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Patterns of =~ with the positions of their groups: the automaton, and the last match
 * of one CPU. Includes no kernel header.
 */
#ifndef SPILE_REGEX_H
#define SPILE_REGEX_H

#include "script.h"

/* Sources of spile_tagged_regex's moves that are not registers. */
enum {
	SPILE_REGEX_HERE = 0xffff,	/* bytes of the string taken so far */
	SPILE_REGEX_UNSET = 0xfffe,	/* no position: -1 */
};

/* One CPU's last match. Ends and text are valid while groups is not 0. */
struct spile_match {
	int *registers;		/* spile_script.match_registers */
	/*
	 * 2 * spile_script.match_groups: begin and end of each group in text, -1 where
	 * it did not match
	 */
	int *ends;
	char *text;		/* spile_script.string_bytes: what group 0 matched */
	/* with group 0; 0: no match since the handler began, or the last one failed */
	unsigned int groups;
};

/*
 * Fills ends with the leftmost longest match in s, or returns 0. registers: as many as
 * regex->registers.
 */
int spile_regex_find(const struct spile_tagged_regex *regex, struct spile_string s, int *registers,
		     int *ends);

#endif
