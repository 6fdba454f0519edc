// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * printf as the language defines it. Directives are those of the reference:
 * d i u o x X p s c b m M, one flag of 0 + - space #, width and precision fixed
 * or `*`. Where C and the language differ, the language is followed: # prints
 * 0x before a zero too, precision does not switch the 0 flag off, %b writes
 * raw bytes and %M the hex digits of memory.
 */
#include "format.h"
#include "histogram.h"
#include "payload.h"
#include "pretty.h"
#include "script.h"

struct directive {
	unsigned char conversion;
	unsigned char flags;	/* enum spile_format_flag */
	bool has_precision;
	__u64 width;		/* 0: none */
	__u64 precision;
};

/* `count` bytes, padded with blanks to the width. */
static void write_padded(struct spile_text *text, const struct directive *d,
			 const char *bytes, size_t count)
{
	__u64 padding = d->width > count ? d->width - count : 0;

	if (!(d->flags & SPILE_FLAG_MINUS))
		spile_text_repeat(text, ' ', padding);
	spile_text_bytes(text, bytes, count);
	if (d->flags & SPILE_FLAG_MINUS)
		spile_text_repeat(text, ' ', padding);
}

/* Sign and prefix of a number: at most "-0x". */
static unsigned int number_prefix(const struct directive *d, bool is_signed, __s64 value,
				  char *prefix)
{
	unsigned int count = 0;

	if (is_signed && value < 0)
		prefix[count++] = '-';
	else if (is_signed && (d->flags & SPILE_FLAG_PLUS))
		prefix[count++] = '+';
	else if (is_signed && (d->flags & SPILE_FLAG_SPACE))
		prefix[count++] = ' ';
	if (d->conversion == 'p' || (d->flags & SPILE_FLAG_SHARP)) {
		switch (d->conversion) {
		case 'x':
		case 'p':
			prefix[count++] = '0';
			prefix[count++] = 'x';
			break;
		case 'X':
			prefix[count++] = '0';
			prefix[count++] = 'X';
			break;
		case 'o':
			prefix[count++] = '0';
			break;
		}
	}
	return count;
}

static void write_number(struct spile_text *text, const struct directive *d, __s64 value)
{
	bool is_signed = d->conversion == 'd' || d->conversion == 'i';
	unsigned int base = d->conversion == 'o' ? 8 :
		d->conversion == 'd' || d->conversion == 'i' || d->conversion == 'u' ? 10 : 16;
	const char *letters = d->conversion == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
	__u64 rest = is_signed && value < 0 ? 0 - (__u64)value : (__u64)value;
	char digits[24];
	char prefix[4];
	unsigned int count = 0;
	unsigned int prefix_count = number_prefix(d, is_signed, value, prefix);
	__u64 zeros, padding;

	do {
		digits[count++] = letters[rest % base];
		rest /= base;
	} while (rest);

	zeros = d->has_precision && d->precision > count ? d->precision - count : 0;
	padding = d->width;
	padding = padding > count ? padding - count : 0;
	padding = padding > prefix_count ? padding - prefix_count : 0;
	padding = padding > zeros ? padding - zeros : 0;

	if (!(d->flags & (SPILE_FLAG_MINUS | SPILE_FLAG_ZERO)))
		spile_text_repeat(text, ' ', padding);
	spile_text_bytes(text, prefix, prefix_count);
	if (!(d->flags & SPILE_FLAG_MINUS) && (d->flags & SPILE_FLAG_ZERO))
		spile_text_repeat(text, '0', padding);
	spile_text_repeat(text, '0', zeros);
	while (count)
		spile_text_byte(text, digits[--count]);
	if (d->flags & SPILE_FLAG_MINUS)
		spile_text_repeat(text, ' ', padding);
}

static void write_character(struct spile_text *text, const struct directive *d, unsigned char byte)
{
	char buffer[8];
	struct spile_text spelled = spile_text_in(buffer, sizeof(buffer));

	if (d->flags & SPILE_FLAG_SHARP)
		spile_text_escaped(&spelled, byte, '\'');
	else
		spile_text_byte(&spelled, byte);
	write_padded(text, d, buffer, spelled.at - spelled.start);
}

static bool is_word_size(__u64 bytes)
{
	return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}

/*
 * %b: as many low bytes as the precision says, else the width, if that is 1, 2, 4 or 8, else 8; in the
 * machine's (little-endian) order, padded with NULs to the width.
 */
static void write_binary(struct spile_text *text, const struct directive *d, __s64 value)
{
	unsigned int bytes = 8;
	__u64 padding;

	if (d->has_precision && is_word_size(d->precision))
		bytes = d->precision;
	else if (is_word_size(d->width))
		bytes = d->width;
	padding = d->width > bytes ? d->width - bytes : 0;
	if (!(d->flags & SPILE_FLAG_MINUS))
		spile_text_repeat(text, 0, padding);
	spile_text_bytes(text, (const char *)&value, bytes);
	if (d->flags & SPILE_FLAG_MINUS)
		spile_text_repeat(text, 0, padding);
}

static void write_hex_dump(struct spile_text *text, const struct directive *d,
			   const char *bytes, size_t count)
{
	__u64 digits = (__u64)count * 2;
	__u64 padding = d->width > digits ? d->width - digits : 0;
	size_t i;

	if (!(d->flags & SPILE_FLAG_MINUS))
		spile_text_repeat(text, ' ', padding);
	for (i = 0; i < count && text->at < text->end; i++) {
		spile_text_byte(text, "0123456789abcdef"[(unsigned char)bytes[i] >> 4]);
		spile_text_byte(text, "0123456789abcdef"[(unsigned char)bytes[i] & 15]);
	}
	if (d->flags & SPILE_FLAG_MINUS)
		spile_text_repeat(text, ' ', padding);
}

/* A width or precision; false when the payload has no more. */
static bool read_size(struct spile_payload *payload, unsigned char kind, __u32 fixed, __s64 *size)
{
	*size = fixed;
	if (kind != SPILE_SIZE_STAR)
		return true;
	return spile_payload_long(payload, size);
}

static bool read_directive(struct spile_code *code, struct spile_payload *payload,
			   struct directive *d)
{
	unsigned char width_kind, precision_kind;
	__s64 width, precision;

	if (!spile_code_has(code, 12))
		return false;
	d->conversion = code->at[0];
	d->flags = code->at[1];
	width_kind = code->at[2];
	precision_kind = code->at[3];
	if (!read_size(payload, width_kind, spile_get_u32(code->at + 4), &width) ||
	    !read_size(payload, precision_kind, spile_get_u32(code->at + 8), &precision))
		return false;
	code->at += 12;

	if (width_kind == SPILE_SIZE_STAR && width < 0) {
		d->flags |= SPILE_FLAG_MINUS;
		width = (__s64)(0 - (__u64)width);
	}
	d->width = width_kind == SPILE_SIZE_NONE ? 0 : (__u64)width;
	/* A negative precision is none of a number, and 0 of a string. */
	d->has_precision = precision_kind == SPILE_SIZE_FIXED ||
		(precision_kind == SPILE_SIZE_STAR && (precision >= 0 || d->conversion == 's'));
	d->precision = d->has_precision && precision >= 0 ? (__u64)precision : 0;
	return true;
}

static bool write_directive(struct spile_text *text, const struct directive *d,
			    struct spile_payload *payload)
{
	const char *bytes;
	__u32 count;
	__s64 value;

	switch (d->conversion) {
	case 's':
	case 'm':
	case 'M':
		if (!spile_payload_bytes(payload, &bytes, &count))
			return false;
		if (count == SPILE_FAULT)
			return true;
		if (d->conversion == 'M') {
			write_hex_dump(text, d, bytes, count);
			return true;
		}
		if (d->conversion == 's' && d->has_precision && count > d->precision)
			count = d->precision;
		write_padded(text, d, bytes, count);
		if (d->conversion == 's' && (d->flags & SPILE_FLAG_ZERO))
			spile_text_byte(text, 0);
		return true;
	}

	if (!spile_payload_long(payload, &value))
		return false;
	switch (d->conversion) {
	case 'c':
		write_character(text, d, value);
		break;
	case 'b':
		write_binary(text, d, value);
		break;
	default:
		write_number(text, d, value);
	}
	return true;
}

unsigned int spile_format_render(const unsigned char *format, unsigned int format_bytes,
				 const struct spile_description *descriptions,
				 unsigned int description_count, const char *payload_start,
				 const char *payload_end, char *out, unsigned int bytes)
{
	struct spile_code code = { format, format + format_bytes };
	struct spile_payload payload = { payload_start, payload_end };
	struct spile_text text = spile_text_in(out, bytes);
	struct directive d;
	__u32 count, number;

	while (code.at < code.end) {
		switch (*code.at++) {
		case SPILE_FORMAT_LITERAL:
			if (!spile_code_has(&code, 2))
				goto end;
			count = spile_get_u16(code.at);
			code.at += 2;
			if (!spile_code_has(&code, count))
				goto end;
			spile_text_bytes(&text, (const char *)code.at, count);
			code.at += count;
			break;
		case SPILE_FORMAT_DIRECTIVE:
			if (!read_directive(&code, &payload, &d) ||
			    !write_directive(&text, &d, &payload))
				goto end;
			break;
		case SPILE_FORMAT_DESCRIBED:
			if (!spile_code_has(&code, 4))
				goto end;
			number = spile_get_u32(code.at);
			if (number >= description_count ||
			    !spile_pretty_render(&text, descriptions[number].code,
						 descriptions[number].bytes, &payload))
				goto end;
			code.at += 4;
			break;
		case SPILE_FORMAT_HISTOGRAM:
			if (!spile_code_has(&code, SPILE_HISTOGRAM_CODE) ||
			    !spile_histogram_render(&text, code.at, NULL, &payload))
				goto end;
			code.at += SPILE_HISTOGRAM_CODE;
			break;
		case SPILE_FORMAT_CHART:
			if (!spile_code_has(&code, SPILE_CHART_CODE + SPILE_HISTOGRAM_CODE) ||
			    !spile_histogram_render(&text, code.at + SPILE_CHART_CODE, code.at,
						    &payload))
				goto end;
			code.at += SPILE_CHART_CODE + SPILE_HISTOGRAM_CODE;
			break;
		default:
			goto end;
		}
	}
end:
	return spile_text_end(&text);
}
