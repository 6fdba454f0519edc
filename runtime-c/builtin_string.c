// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Builtins about strings.
 */
#include <linux/kernel.h>
#include <linux/string.h>

#include "script.h"
#include "builtins.h"
#include "context.h"
#include "text.h"

unsigned int spile_fn_substr(struct spile_context *c, struct spile_string s, spile_long start,
			     spile_long length, char *out)
{
	if (start < 0 || start >= s.length || length <= 0)
		return spile_string_copy(out, SPILE_LITERAL(""));
	return spile_string_copy(out, (struct spile_string){
		s.text + start, min_t(spile_ulong, length, s.length - start)
	});
}

/* Place of part in s from `from` on, or -1. */
static int find(struct spile_string s, unsigned int from, struct spile_string part)
{
	const char *at = s.text + from;
	const char *end = s.text + s.length;

	if (!part.length)
		return from;
	for (; end - at >= part.length; at++) {
		at = memchr(at, part.text[0], end - at - part.length + 1);
		if (!at)
			return -1;
		if (!memcmp(at, part.text, part.length))
			return at - s.text;
	}
	return -1;
}

spile_long spile_fn_isinstr(struct spile_context *c, struct spile_string s, struct spile_string part)
{
	return find(s, 0, part) >= 0;
}

spile_long spile_fn_strpos(struct spile_context *c, struct spile_string s, struct spile_string part)
{
	return find(s, 0, part);
}

spile_long spile_fn_stringat(struct spile_context *c, struct spile_string s, spile_long position)
{
	if (position < 0 || position >= s.length)
		return 0;
	return (unsigned char)s.text[position];
}

spile_long spile_fn_strtol(struct spile_context *c, struct spile_string s, spile_long base)
{
	if (base < 0 || base == 1 || base > 36)
		return 0;
	return simple_strtoll(s.text, NULL, base);
}

unsigned int spile_fn_str_replace(struct spile_context *c, struct spile_string s, struct spile_string old,
				  struct spile_string new_text, char *out)
{
	struct spile_text text = spile_text_in(out, spile_script.string_bytes);
	unsigned int from = 0;
	int at;

	if (!old.length)
		return spile_string_copy(out, s);
	while ((at = find(s, from, old)) >= 0) {
		spile_text_bytes(&text, s.text + from, at - from);
		spile_text_bytes(&text, new_text.text, new_text.length);
		from = at + old.length;
	}
	spile_text_bytes(&text, s.text + from, s.length - from);
	return spile_text_end(&text);
}

unsigned int spile_fn_string_quoted(struct spile_context *c, struct spile_string s, char *out)
{
	return spile_text_quote(out, spile_script.string_bytes, s.text, s.length);
}

unsigned int spile_fn_text_str(struct spile_context *c, struct spile_string s, char *out)
{
	struct spile_text text = spile_text_in(out, spile_script.string_bytes);
	unsigned int i;

	for (i = 0; i < s.length && text.at < text.end; i++)
		spile_text_escaped(&text, s.text[i], '"');
	return spile_text_end(&text);
}

unsigned int spile_fn_tokenize(struct spile_context *c, struct spile_string s,
			       struct spile_string delimiters, char *out)
{
	struct spile_cpu *cpu = spile_cpu_of(c);
	unsigned int start;

	if (s.length) {
		cpu->token_end = spile_string_copy(cpu->tokens, s);
		cpu->token_at = 0;
	}
	/* Delimiters in a row make no empty tokens. */
	while (cpu->token_at < cpu->token_end &&
	       memchr(delimiters.text, cpu->tokens[cpu->token_at], delimiters.length))
		cpu->token_at++;
	start = cpu->token_at;
	while (cpu->token_at < cpu->token_end &&
	       !memchr(delimiters.text, cpu->tokens[cpu->token_at], delimiters.length))
		cpu->token_at++;
	return spile_string_copy(out, (struct spile_string){
		cpu->tokens + start, cpu->token_at - start
	});
}
