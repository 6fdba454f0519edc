// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Builtins about strings.
 */
#include <linux/kernel.h>
#include <linux/string.h>

#include "script.h"
#include "builtins.h"
#include "context.h"
#include "guard.h"
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

/*
 * Index of part in s, from `from` on, or -1. The worst case takes the product of the
 * lengths; it is charged, so the run may be ended.
 */
static int find(struct spile_context *c, struct spile_string s, unsigned int from,
		struct spile_string part)
{
	const char *at = s.text + from;
	const char *end = s.text + s.length;

	if (!part.length)
		return from;
	for (; end - at >= part.length; at++) {
		if (!spile_charge_steps(c, 1 + part.length / 16))
			return -1;
		at = memchr(at, part.text[0], end - at - part.length + 1);
		if (!at)
			return -1;
		if (!memcmp(at, part.text, part.length))
			return at - s.text;
	}
	return -1;
}

spile_long spile_fn_isinstr(struct spile_context *c, struct spile_string s,
			    struct spile_string part)
{
	return find(c, s, 0, part) >= 0;
}

spile_long spile_fn_strpos(struct spile_context *c, struct spile_string s, struct spile_string part)
{
	return find(c, s, 0, part);
}

spile_long spile_fn_stringat(struct spile_context *c, struct spile_string s, spile_long position)
{
	if (position < 0 || position >= s.length) {
		spile_fail_text(c, "Position out of bounds: %lld of a string of %u bytes", position,
				s.length);
		return 0;
	}
	return (unsigned char)s.text[position];
}

/* Value of a digit in base 16; 36 for other characters. */
static unsigned int string_digit(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	if (digit >= 'a' && digit <= 'f')
		return digit - 'a' + 10;
	if (digit >= 'A' && digit <= 'F')
		return digit - 'A' + 10;
	return 36;
}

/* As the kernel's simple_strtoll(), which only knows the digits of base 16. */
spile_long spile_fn_strtol(struct spile_context *c, struct spile_string s, spile_long base)
{
	bool negative = s.length && s.text[0] == '-';
	unsigned int at = negative;
	spile_ulong value = 0;

	if (base < 0 || base == 1 || base > 36)
		return 0;
	/* Reading the NUL at the end is fine: it is not a digit. */
	if ((base == 0 || base == 16) && s.length > at + 2 && s.text[at] == '0' &&
	    (s.text[at + 1] | 0x20) == 'x' && string_digit(s.text[at + 2]) < 16) {
		base = 16;
		at += 2;
	} else if (base == 0) {
		base = s.text[at] == '0' ? 8 : 10;
	}
	for (; at < s.length && string_digit(s.text[at]) < base; at++)
		value = value * base + string_digit(s.text[at]);
	return negative ? spile_negate(value) : (spile_long)value;
}

unsigned int spile_fn_str_replace(struct spile_context *c, struct spile_string s,
				  struct spile_string old, struct spile_string new_text, char *out)
{
	struct spile_text text = spile_text_in(out, spile_script.string_bytes);
	unsigned int from = 0;
	int at;

	if (!old.length)
		return spile_string_copy(out, s);
	while ((at = find(c, s, from, old)) >= 0) {
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
	return spile_text_escape(out, spile_script.string_bytes, s.text, s.length);
}

unsigned int spile_fn_text_strn(struct spile_context *c, struct spile_string s, spile_long most,
				spile_long quoted, char *out)
{
	if (most <= 0 || most >= spile_script.string_bytes)
		most = spile_script.string_bytes - 1;
	if (!quoted)
		return spile_text_escape(out, most + 1, s.text, s.length);
	/* The shortest truncated string: ""... */
	return spile_text_quote(out, max(most, 5LL) + 1, s.text, s.length);
}

unsigned int spile_fn_tokenize_next(struct spile_context *c, struct spile_string delimiters,
				    char *out)
{
	return spile_fn_tokenize(c, SPILE_LITERAL(""), delimiters, out);
}

unsigned int spile_fn_tokenize(struct spile_context *c, struct spile_string s,
			       struct spile_string delimiters, char *out)
{
	struct spile_cpu *cpu = spile_cpu_of(c);
	unsigned int start, end, left;

	if (s.length) {
		cpu->token_end = spile_string_copy(cpu->tokens, s);
		cpu->token_at = 0;
		c->stale |= SPILE_STALE_RUN;
	}
	/* token_end is 0 at the beginning of a run; token_at may be left from an earlier one. */
	left = cpu->token_at < cpu->token_end ? cpu->token_end - cpu->token_at : 0;
	/* Each byte may be compared with all delimiters. */
	if (!spile_charge_steps(c, (1 + delimiters.length / 8) * (spile_ulong)left / 8)) {
		out[0] = 0;
		return 0;
	}
	/* There are no empty tokens between delimiters. */
	while (cpu->token_at < cpu->token_end &&
	       memchr(delimiters.text, cpu->tokens[cpu->token_at], delimiters.length))
		cpu->token_at++;
	start = cpu->token_at;
	while (cpu->token_at < cpu->token_end &&
	       !memchr(delimiters.text, cpu->tokens[cpu->token_at], delimiters.length))
		cpu->token_at++;
	end = cpu->token_at;
	/* Skips the delimiter, because the next call may use others. */
	if (cpu->token_at < cpu->token_end)
		cpu->token_at++;
	return spile_string_copy(out, (struct spile_string){ cpu->tokens + start, end - start });
}
