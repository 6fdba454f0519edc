// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Interprets the automata that the compiler has made of the patterns of =~. Also compiles in
 * user space, for the test that runs patterns through it.
 *
 * Any context. One step for each byte of the string, which moves at most as many registers as
 * the automaton has.
 */
#include "regex.h"

int spile_regex_test(const struct spile_regex *regex, struct spile_string s)
{
	unsigned int state = regex->start;
	unsigned int i;

	for (i = 0; i < s.length && state > SPILE_REGEX_MATCHED; i++)
		state = regex->next[state * regex->class_count +
				    regex->classes[(unsigned char)s.text[i]]];
	return regex->at_end[state];
}

static int regex_source(const int *registers, unsigned int source, unsigned int at)
{
	switch (source) {
	case SPILE_REGEX_HERE:
		return at;
	case SPILE_REGEX_UNSET:
		return -1;
	default:
		return registers[source];
	}
}

/* A transition's moves: their number, then (to, source) each. */
static void regex_move(const unsigned short *moves, int *registers, unsigned int at)
{
	unsigned int count = *moves++;

	for (; count; count--, moves += 2)
		registers[moves[0]] = regex_source(registers, moves[1], at);
}

/*
 * A match that ends at `at`: its tags are the begin of the whole, then begin and end of each group.
 */
static void regex_ends(const struct spile_tagged_regex *regex, unsigned int sources,
		       const int *registers, unsigned int at, int *ends)
{
	const unsigned short *source = regex->moves + sources;
	unsigned int group;

	ends[0] = regex_source(registers, *source++, at);
	ends[1] = at;
	for (group = 1; group < regex->groups; group++, source += 2) {
		ends[2 * group] = regex_source(registers, source[0], at);
		ends[2 * group + 1] = regex_source(registers, source[1], at);
	}
}

int spile_regex_find(const struct spile_tagged_regex *regex, struct spile_string s, int *registers,
		     int *ends)
{
	unsigned int state = regex->start;
	int found = 0;
	unsigned int i;

	regex_move(regex->moves + regex->start_action, registers, 0);
	for (i = 0; i < s.length && state; i++) {
		unsigned int transition =
			state * regex->class_count + regex->classes[(unsigned char)s.text[i]];

		/* Later ends are better: they replace this one. */
		if (regex->accept[state]) {
			regex_ends(regex, regex->accept[state], registers, i, ends);
			found = 1;
		}
		regex_move(regex->moves + regex->actions[transition], registers, i + 1);
		state = regex->next[transition];
	}
	if (regex->at_end[state]) {
		regex_ends(regex, regex->at_end[state], registers, s.length, ends);
		found = 1;
	}
	return found;
}
