// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Walks the description of an object and writes it as text. Compiles in user space too.
 *
 * Any context; no recursion. A walk ends after at most the number of elements that the
 * description names, SPILE_PRETTY_ELEMENTS at most; text ends with its buffer.
 */
#include "float_text.h"
#include "pretty.h"

bool spile_pretty_begin(struct spile_pretty_walk *walk, const unsigned char *description,
			unsigned int description_bytes, __u32 *object_bytes)
{
	if (description_bytes < 4)
		return false;
	*object_bytes = spile_get_u32(description) &
			~(SPILE_PRETTY_USER | SPILE_PRETTY_NARROW);
	walk->user = spile_get_u32(description) & SPILE_PRETTY_USER;
	walk->pointer = spile_get_u32(description) & SPILE_PRETTY_NARROW ? 4 : 8;
	walk->code.at = description + 4;
	walk->code.end = description + description_bytes;
	walk->depth = 0;
	walk->base = 0;
	walk->elements = 0;
	walk->separator = false;
	return true;
}

/* Enters a REPEAT whose operands are at code.at. */
static bool enter_repeat(struct spile_pretty_walk *walk)
{
	const unsigned char *at = walk->code.at;
	__u32 offset, count, stride, body;

	if (!spile_code_has(&walk->code, 16))
		return false;
	offset = spile_get_u32(at);
	count = spile_get_u32(at + 4);
	stride = spile_get_u32(at + 8);
	body = spile_get_u32(at + 12);
	walk->code.at += 16;
	if (!spile_code_has(&walk->code, body))
		return false;
	if (!count) {
		walk->code.at += body;
		return true;
	}
	if (walk->depth == SPILE_PRETTY_DEPTH)
		return false;
	walk->level[walk->depth].body = walk->code.at;
	walk->level[walk->depth].body_end = walk->code.at + body;
	walk->level[walk->depth].outer_end = walk->code.end;
	walk->level[walk->depth].base = walk->base;
	walk->level[walk->depth].left = count - 1;
	walk->level[walk->depth].stride = stride;
	walk->depth++;
	walk->base += offset;
	walk->code.end = walk->code.at + body;
	return true;
}

/*
 * At the end of a body: goes on to the next element, or leaves the REPEAT. False at the end of
 * the description.
 */
static bool leave_body(struct spile_pretty_walk *walk)
{
	unsigned int top;

	if (!walk->depth || ++walk->elements > SPILE_PRETTY_ELEMENTS)
		return false;
	top = walk->depth - 1;
	if (walk->level[top].left) {
		walk->level[top].left--;
		walk->base += walk->level[top].stride;
		walk->code.at = walk->level[top].body;
		walk->separator = true;
		return true;
	}
	walk->base = walk->level[top].base;
	walk->code.at = walk->level[top].body_end;
	walk->code.end = walk->level[top].outer_end;
	walk->depth--;
	return true;
}

/* Bytes of an item's operands, without the text that follows some of them; -1: no such item. */
static int operand_bytes(unsigned char op)
{
	switch (op) {
	case SPILE_PRETTY_UNKNOWN:
		return 0;
	case SPILE_PRETTY_LITERAL:
		return 2;
	case SPILE_PRETTY_STRING_POINTER:
		return 4;
	case SPILE_PRETTY_INTEGER:
	case SPILE_PRETTY_CHARS:
	case SPILE_PRETTY_TEXT:
		return 8;
	case SPILE_PRETTY_ENUM:
		return 10;
	case SPILE_PRETTY_WHEN:
		return 12;
	default:
		return -1;
	}
}

bool spile_pretty_next(struct spile_pretty_walk *walk, struct spile_pretty_item *item)
{
	for (;;) {
		unsigned char op;
		int operands;

		op = walk->code.at < walk->code.end ? *walk->code.at++ : SPILE_PRETTY_END;
		if (op == SPILE_PRETTY_END) {
			if (!leave_body(walk))
				return false;
			continue;
		}
		if (op == SPILE_PRETTY_REPEAT) {
			if (!enter_repeat(walk))
				return false;
			continue;
		}

		operands = operand_bytes(op);
		if (operands < 0 || !spile_code_has(&walk->code, operands))
			return false;
		item->op = op;
		item->operands = walk->code.at;
		item->separator = walk->separator;
		item->offset = 0;
		item->length = spile_pretty_points(item) ? walk->pointer : 0;
		walk->separator = false;
		walk->code.at += operands;
		if (op == SPILE_PRETTY_LITERAL) {
			item->length = spile_get_u16(item->operands);
			if (!spile_code_has(&walk->code, item->length))
				return false;
			walk->code.at += item->length;
		} else if (op != SPILE_PRETTY_UNKNOWN) {
			item->offset = walk->base + spile_get_u32(item->operands);
			if (op == SPILE_PRETTY_CHARS)
				item->length = spile_get_u32(item->operands + 4);
			if (op == SPILE_PRETTY_TEXT)
				item->second = walk->base + spile_get_u32(item->operands + 4);
			if (op == SPILE_PRETTY_WHEN) {
				size_t values = 8 * spile_get_u16(item->operands + 6);

				item->length = spile_get_u32(item->operands + 8);
				if (!spile_code_has(&walk->code, values + item->length))
					return false;
				walk->code.at += values;
			}
			if (op == SPILE_PRETTY_ENUM) {
				item->length = spile_get_u16(item->operands + 8);
				if (!spile_code_has(&walk->code, item->length))
					return false;
				walk->code.at += item->length;
			}
		}
		return true;
	}
}

/* `whole`: not only up to the first NUL. */
static void write_quoted(struct spile_text *text, const char *bytes, __u32 count, bool whole)
{
	__u32 i;

	spile_text_byte(text, '"');
	for (i = 0; i < count && (whole || bytes[i]) && text->at < text->end; i++)
		spile_text_escaped(text, bytes[i], '"');
	spile_text_byte(text, '"');
}

/* A field of *bits bits, at the top of the word. */
static __u64 field_at(const char *at, const unsigned char *operands, unsigned int *bits)
{
	unsigned int size = operands[4], first = operands[5];
	__u64 value = 0;

	*bits = operands[6] ? operands[6] : size * 8;
	memcpy(&value, at, size);
	return value >> (first & 63) << (64 - *bits);
}

/* Apart, because of its memory. */
static __attribute__((__noinline__)) void write_float(struct spile_text *text, const char *at,
						      unsigned int size)
{
	char number[SPILE_FLOAT_PRETTY_BYTES];
	__u64 bits = 0;

	memcpy(&bits, at, size);
	spile_text_bytes(text, number,
			 spile_float_text(bits, size, SPILE_FLOAT_PRETTY, number, sizeof(number)));
}

static void write_wide(struct spile_text *text, const char *at)
{
	__u64 low, high;
	int shift;

	memcpy(&low, at, 8);
	memcpy(&high, at + 8, 8);
	spile_text_literal(text, "0x");
	spile_text_number(text, high ?: low, 16);
	for (shift = 60; high && shift >= 0; shift -= 4)
		spile_text_byte(text, "0123456789abcdef"[low >> shift & 15]);
}

static void write_integer(struct spile_text *text, const char *at, const unsigned char *operands)
{
	unsigned int bits;
	__u64 value;

	if (operands[4] == 16) {
		write_wide(text, at);
		return;
	}
	if (operands[7] == SPILE_STYLE_FLOAT) {
		write_float(text, at, operands[4]);
		return;
	}
	value = field_at(at, operands, &bits);
	switch (operands[7]) {
	case SPILE_STYLE_SIGNED: {
		__s64 number = (__s64)value >> (64 - bits);

		if (number < 0)
			spile_text_byte(text, '-');
		spile_text_number(text, number < 0 ? 0 - (__u64)number : (__u64)number, 10);
		return;
	}
	case SPILE_STYLE_UNSIGNED:
		spile_text_number(text, value >> (64 - bits), 10);
		return;
	case SPILE_STYLE_CHAR:
		spile_text_byte(text, '\'');
		spile_text_escaped(text, value >> (64 - bits), '\'');
		spile_text_byte(text, '\'');
		return;
	case SPILE_STYLE_FUNCTION:
		spile_text_literal(text, "<function>:");
		break;
	}
	spile_text_literal(text, "0x");
	spile_text_number(text, value >> (64 - bits), 16);
}

static void write_enum(struct spile_text *text, const char *at,
		       const struct spile_pretty_item *item)
{
	const unsigned char *entry = item->operands + 10, *end = entry + item->length;
	unsigned int bits;
	__u64 value = field_at(at, item->operands, &bits);

	value = item->operands[7] == SPILE_STYLE_SIGNED ? (__u64)((__s64)value >> (64 - bits)) :
							   value >> (64 - bits);
	/* Bounded: 64 KB of entries with 9 bytes or more. */
	for (; end - entry >= 9 && end - entry - 9 >= entry[8]; entry += 9 + entry[8]) {
		if (spile_get_u64(entry) == value) {
			spile_text_bytes(text, (const char *)entry + 9, entry[8]);
			return;
		}
	}
	write_integer(text, at, item->operands);
}

/* Whether the operands of an INTEGER or ENUM are valid. */
static bool integer_is_sound(const struct spile_pretty_item *item)
{
	const unsigned char *operands = item->operands;
	unsigned int size = operands[4];

	if (size == 16)
		return item->op == SPILE_PRETTY_INTEGER && operands[7] == SPILE_STYLE_HEX &&
		       !operands[5] && !operands[6];
	if (operands[7] == SPILE_STYLE_FLOAT)
		return (size == 4 || size == 8) && !operands[6];
	return (size == 1 || size == 2 || size == 4 || size == 8) && operands[6] <= 64;
}

/* The bytes of the object that an item describes; NULL if they are outside of it. */
static const char *item_bytes(const struct spile_pretty_item *item, const char *raw,
			      __u32 raw_bytes)
{
	bool is_number = item->op == SPILE_PRETTY_INTEGER || item->op == SPILE_PRETTY_ENUM;
	unsigned long size = is_number ? item->operands[4] : item->length;

	if (item->offset > raw_bytes || raw_bytes - item->offset < size)
		return NULL;
	return raw + item->offset;
}

/* Whether the body of a WHEN is printed. */
static bool when_holds(const struct spile_pretty_item *item, const char *raw, __u32 raw_bytes)
{
	unsigned int size = item->operands[4], count = spile_get_u16(item->operands + 6), i;
	bool found = false;
	__u64 value = 0;

	if (size > 8 || item->offset > raw_bytes || raw_bytes - item->offset < size)
		return false;
	memcpy(&value, raw + item->offset, size);
	/* Bounded: by 64 K. */
	for (i = 0; i < count && !found; i++)
		found = spile_get_u64(item->operands + 12 + 8 * i) == value;
	return found != !!item->operands[5];
}

static bool write_item(struct spile_text *text, const struct spile_pretty_item *item,
		       const char *raw, __u32 raw_bytes, struct spile_payload *payload)
{
	const char *at, *string;
	__u32 count;

	if (item->separator)
		spile_text_literal(text, ", ");
	switch (item->op) {
	case SPILE_PRETTY_LITERAL:
		spile_text_bytes(text, (const char *)item->operands + 2, item->length);
		return true;
	case SPILE_PRETTY_UNKNOWN:
		spile_text_byte(text, '?');
		return true;
	}

	at = item_bytes(item, raw, raw_bytes);
	if (spile_pretty_points(item)) {
		if (!spile_payload_bytes(payload, &string, &count))
			return false;
		if (!at) {
			spile_text_literal(text, "ERROR");
		} else if (!spile_pretty_pointer(at, item) || count == SPILE_FAULT) {
			/* It is no text: an empty buffer, or another member of a union. */
			spile_text_literal(text, "0x");
			spile_text_number(text, spile_pretty_pointer(at, item), 16);
		} else {
			write_quoted(text, string, count, item->op == SPILE_PRETTY_TEXT);
		}
		return true;
	}
	if (!at || (item->op != SPILE_PRETTY_CHARS && !integer_is_sound(item)))
		spile_text_literal(text, "ERROR");
	else if (item->op == SPILE_PRETTY_CHARS)
		write_quoted(text, at, item->length, false);
	else if (item->op == SPILE_PRETTY_ENUM)
		write_enum(text, at, item);
	else
		write_integer(text, at, item->operands);
	return true;
}

bool spile_pretty_render(struct spile_text *text, const unsigned char *description,
			 unsigned int description_bytes, struct spile_payload *payload)
{
	struct spile_pretty_walk walk;
	struct spile_pretty_item item;
	__u32 object_bytes, raw_bytes, string_bytes;
	const char *raw, *string;
	/* the body of a WHEN that does not hold */
	const unsigned char *hidden = NULL, *hidden_end = NULL;

	if (!spile_pretty_begin(&walk, description, description_bytes, &object_bytes) ||
	    !spile_payload_bytes(payload, &raw, &raw_bytes))
		return false;
	if (raw_bytes == SPILE_FAULT) {
		spile_text_literal(text, "ERROR");
		return true;	/* no string parts follow */
	}
	while (spile_pretty_next(&walk, &item)) {
		/* By the place of its operation, which is before the operands. */
		if (item.operands > hidden && item.operands <= hidden_end) {
			if (spile_pretty_points(&item) &&
			    !spile_payload_bytes(payload, &string, &string_bytes))
				return false;
		} else if (item.op == SPILE_PRETTY_WHEN) {
			if (item.separator)
				spile_text_literal(text, ", ");
			hidden = walk.code.at;
			hidden_end = hidden;
			if (!when_holds(&item, raw, raw_bytes))
				hidden_end += item.length;
		} else if (!write_item(text, &item, raw, raw_bytes, payload)) {
			return false;
		}
	}
	return true;
}
