// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * =~ and !~ in scripts that use matched(), and the builtins that return the groups. Any
 * context.
 */
#include "script.h"
#include "builtins.h"
#include "context.h"
#include "guard.h"
#include "regex.h"

int spile_regex_match(struct spile_context *c, const struct spile_tagged_regex *regex,
		      struct spile_string s)
{
	struct spile_match *match = &spile_cpu_of(c)->match;
	int begin;
	unsigned int i;

	match->groups = 0;
	if (!spile_regex_find(regex, s, match->registers, match->ends))
		return 0;
	/* A copy, because the string may change before matched() is called. */
	begin = match->ends[0];
	spile_string_copy(match->text,
			  (struct spile_string){ s.text + begin, match->ends[1] - begin });
	for (i = 0; i < 2 * regex->groups; i++)
		if (match->ends[i] >= 0)
			match->ends[i] -= begin;
	match->groups = regex->groups;
	c->stale |= SPILE_STALE_RUN;
	return 1;
}

unsigned int spile_fn_matched(struct spile_context *c, spile_long n, char *out)
{
	struct spile_match *match = &spile_cpu_of(c)->match;

	out[0] = 0;
	if (!match->groups) {
		spile_fail_text(c, "Attempted to get subexpression %lld from failed match", n);
		return 0;
	}
	if (n < 0 || n >= match->groups) {
		spile_fail_text(c, "Attempted to get nonexistent subexpression %lld of %u", n,
				match->groups - 1);
		return 0;
	}
	if (match->ends[2 * n] < 0)
		return 0;
	return spile_string_copy(out, (struct spile_string){
		match->text + match->ends[2 * n], match->ends[2 * n + 1] - match->ends[2 * n]
	});
}

unsigned int spile_fn_matched_str(struct spile_context *c, char *out)
{
	return spile_fn_matched(c, 0, out);
}

spile_long spile_fn_ngroups(struct spile_context *c)
{
	struct spile_match *match = &spile_cpu_of(c)->match;

	/* Group 0 always exists. */
	if (!match->groups)
		spile_fail_text(c, "Attempted to get subexpression count from failed match");
	return match->groups;
}
