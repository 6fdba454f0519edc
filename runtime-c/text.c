// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Text pieces that formats and pretty-printed objects share. Compiles in user
 * space too.
 */
#include "text.h"

void spile_text_escaped(struct spile_text *text, unsigned char byte, char quote)
{
	static const char letters[] = "abtnvfr";	/* 7 to 13 */

	if (byte >= 7 && byte <= 13) {
		spile_text_byte(text, '\\');
		spile_text_byte(text, letters[byte - 7]);
	} else if (byte == '\\' || (byte == (unsigned char)quote && quote)) {
		spile_text_byte(text, '\\');
		spile_text_byte(text, byte);
	} else if (byte >= 32 && byte < 127) {
		spile_text_byte(text, byte);
	} else {
		spile_text_byte(text, '\\');
		spile_text_byte(text, '0' + (byte >> 6));
		spile_text_byte(text, '0' + ((byte >> 3) & 7));
		spile_text_byte(text, '0' + (byte & 7));
	}
}

void spile_text_number(struct spile_text *text, __u64 value, unsigned int base)
{
	char digits[64];
	unsigned int count = 0;

	do {
		digits[count++] = "0123456789abcdef"[value % base];
		value /= base;
	} while (value);
	while (count)
		spile_text_byte(text, digits[--count]);
}

unsigned int spile_text_quote(char *out, unsigned int bytes, const char *text, unsigned int length)
{
	enum { ESCAPE_MAX = 4, TAIL = sizeof("\"...") - 1 };
	struct spile_text quoted = spile_text_in(out, bytes);
	unsigned int i;

	spile_text_byte(&quoted, '"');
	for (i = 0; i < length; i++) {
		if (quoted.end - quoted.at < ESCAPE_MAX + TAIL) {
			spile_text_literal(&quoted, "\"...");
			return spile_text_end(&quoted);
		}
		spile_text_escaped(&quoted, text[i], '"');
	}
	spile_text_byte(&quoted, '"');
	return spile_text_end(&quoted);
}
