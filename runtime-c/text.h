/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A string being written into a buffer of fixed size: it is truncated, with one byte left for the
 * NUL. Any context; bounded by the buffer.
 */
#ifndef SPILE_TEXT_H
#define SPILE_TEXT_H

#include "portable.h"

struct spile_text {
	char *start;
	char *at;
	char *end;	/* last possible place of the NUL */
};

static inline struct spile_text spile_text_in(char *buffer, unsigned int bytes)
{
	return (struct spile_text){ buffer, buffer, buffer + bytes - 1 };
}

static inline void spile_text_byte(struct spile_text *text, char byte)
{
	if (text->at < text->end)
		*text->at++ = byte;
}

static inline void spile_text_bytes(struct spile_text *text, const char *bytes, size_t count)
{
	size_t room = text->end - text->at;

	if (count > room)
		count = room;
	memcpy(text->at, bytes, count);
	text->at += count;
}

static inline void spile_text_repeat(struct spile_text *text, char byte, __u64 count)
{
	size_t room = text->end - text->at;

	if (count > room)
		count = room;
	memset(text->at, byte, count);
	text->at += count;
}

static inline void spile_text_literal(struct spile_text *text, const char *literal)
{
	spile_text_bytes(text, literal, strlen(literal));
}

/* Writes the NUL; returns the length without it. */
static inline unsigned int spile_text_end(struct spile_text *text)
{
	*text->at = 0;
	return text->at - text->start;
}

/*
 * One byte as C spells it inside '' or "": \a \b \t \n \v \f \r \\ and the quote
 * itself with a backslash, other unprintable bytes as three octal digits.
 */
void spile_text_escaped(struct spile_text *text, unsigned char byte, char quote);

/*
 * Writes the text to out, escaped as between double quotes; truncated before the first byte
 * whose escape does not fit in `bytes`. Returns the length without the NUL.
 */
unsigned int spile_text_escape(char *out, unsigned int bytes, const char *text,
			       unsigned int length);

/*
 * The same with double quotes; if it does not fit in `bytes` (6 or more), it is truncated and
 * ends with "...
 */
unsigned int spile_text_quote(char *out, unsigned int bytes, const char *text, unsigned int length);

/* Writes value in base 2 to 16, in lower case. */
void spile_text_number(struct spile_text *text, __u64 value, unsigned int base);

#endif
