// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * String values. Any context; bounded by spile_script.string_bytes. Compiles in
 * user space too.
 */
#include "portable.h"
#include "script.h"

unsigned int spile_string_copy(char *out, struct spile_string s)
{
	unsigned int length = min(s.length, spile_script.string_bytes - 1);

	memmove(out, s.text, length);	/* out may be the string itself */
	out[length] = 0;
	return length;
}

unsigned int spile_string_concatenate(char *out, struct spile_string a, struct spile_string b)
{
	unsigned int most = spile_script.string_bytes - 1;
	unsigned int first = min(a.length, most);
	unsigned int second = min(b.length, most - first);

	/* Either may be `out` itself, so the second is copied before the first overwrites it. */
	memmove(out + first, b.text, second);
	if (out != a.text)
		memmove(out, a.text, first);
	out[first + second] = 0;
	return first + second;
}

int spile_string_compare(struct spile_string a, struct spile_string b)
{
	int order = memcmp(a.text, b.text, min(a.length, b.length));

	if (order || a.length == b.length)
		return order;
	return a.length < b.length ? -1 : 1;
}

unsigned int spile_string_length(const char *text)
{
	unsigned int length = strnlen(text, spile_script.string_bytes - 1);

	/* The text is a buffer of string_bytes that embedded C has filled. */
	((char *)text)[length] = 0;
	return length;
}
