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

/*
 * Bytes of the UTF-8 sequence of two to four bytes that begins at `text`, and its code point; 0: none
 * does, or it is longer than necessary (RFC 3629).
 */
static unsigned int decode_utf8(const char *text, unsigned int length, __u32 *code_point)
{
	static const __u32 least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned char first = text[0];
	unsigned int bytes, i;

	if (first < 0xc0 || first >= 0xf8)
		return 0;
	bytes = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
	if (length < bytes)
		return 0;
	*code_point = first & (0x7f >> bytes);
	for (i = 1; i < bytes; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		*code_point = *code_point << 6 | (text[i] & 0x3f);
	}
	/* UTF-16's surrogates are no characters. */
	if (*code_point < least[bytes] || *code_point > 0x10ffff ||
	    (*code_point >= 0xd800 && *code_point <= 0xdfff))
		return 0;
	return bytes;
}

/* Spells the first character, of `length` bytes at least 1; returns how many bytes it has. */
static unsigned int spell(struct spile_text *spelled, const char *text, unsigned int length)
{
	unsigned int bytes, digits;
	__u32 code_point;

	bytes = decode_utf8(text, length, &code_point);
	if (!bytes) {
		spile_text_escaped(spelled, text[0], '"');
		return 1;
	}
	digits = code_point <= 0xffff ? 4 : 8;
	spile_text_byte(spelled, '\\');
	spile_text_byte(spelled, digits == 4 ? 'u' : 'U');
	while (digits--)
		spile_text_byte(spelled, "0123456789ABCDEF"[code_point >> (4 * digits) & 15]);
	return bytes;
}

/* Maximum bytes of an escaped character, and the terminating NUL. */
enum { ESCAPED_BYTES = 11 };

unsigned int spile_text_escape(char *out, unsigned int bytes, const char *text, unsigned int length)
{
	struct spile_text escaped = spile_text_in(out, bytes);
	char one[ESCAPED_BYTES];
	unsigned int i, spent;

	for (i = 0; i < length; i += spent) {
		struct spile_text spelled = spile_text_in(one, sizeof(one));

		spent = spell(&spelled, text + i, length - i);
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
	unsigned int i, spent;

	spile_text_byte(&quoted, '"');
	cut = quoted.at;
	for (i = 0; i < length; i += spent) {
		struct spile_text spelled = spile_text_in(one, sizeof(one));

		spent = spell(&spelled, text + i, length - i);
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
