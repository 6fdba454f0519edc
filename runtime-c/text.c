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

/* Maximum bytes of an escaped character, and the terminating NUL. */
enum { ESCAPED_BYTES = 5 };

unsigned int spile_text_escape(char *out, unsigned int bytes, const char *text, unsigned int length)
{
	struct spile_text escaped = spile_text_in(out, bytes);
	char one[ESCAPED_BYTES];
	unsigned int i;

	for (i = 0; i < length; i++) {
		struct spile_text spelled = spile_text_in(one, sizeof(one));

		spile_text_escaped(&spelled, text[i], '"');
		if (escaped.end - escaped.at < spelled.at - spelled.start)
			break;
		spile_text_bytes(&escaped, one, spelled.at - spelled.start);
	}
	return spile_text_end(&escaped);
}

unsigned int spile_text_quote(char *out, unsigned int bytes, const char *text, unsigned int length)
{
	enum { TAIL = sizeof("\"...") - 1 };
	struct spile_text quoted = spile_text_in(out, bytes);
	char one[ESCAPED_BYTES];
	char *cut;	/* the last place that leaves room for the tail */
	unsigned int i;

	spile_text_byte(&quoted, '"');
	cut = quoted.at;
	for (i = 0; i < length; i++) {
		struct spile_text spelled = spile_text_in(one, sizeof(one));

		spile_text_escaped(&spelled, text[i], '"');
		if (quoted.end - quoted.at < spelled.at - spelled.start + 1) {
			quoted.at = cut;
			spile_text_literal(&quoted, "\"...");
			return spile_text_end(&quoted);
		}
		spile_text_bytes(&quoted, one, spelled.at - spelled.start);
		if (quoted.end - quoted.at >= TAIL)
			cut = quoted.at;
	}
	spile_text_byte(&quoted, '"');
	return spile_text_end(&quoted);
}
