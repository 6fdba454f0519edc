// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Patterns of =~: interprets the automata that the compiler made of them. Also
 * compiles in user space, for the test that runs patterns through it.
 *
 * Any context; one look into a table for each byte of the string.
 */
#include "script.h"

int spile_regex_test(const struct spile_regex *regex, struct spile_string s)
{
	unsigned int state = regex->start;
	unsigned int i;

	for (i = 0; i < s.length && state > SPILE_REGEX_MATCHED; i++)
		state = regex->next[state * regex->class_count + regex->classes[(unsigned char)s.text[i]]];
	return regex->at_end[state];
}
