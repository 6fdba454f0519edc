// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * format.c, pretty.c, text.c and kernel_range.h in user space: each line is one case, input and
 * expected text together. Prints the differences and exits with 1 if there are any.
 *
 *     cc -o units units.c ../format.c ../pretty.c ../float_text.c ../text.c && ./units
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "../format.h"
#include "../kernel_range.h"
#include "../pretty.h"
#include "../script.h"

static int failures;

static void expect(const char *name, const char *got, unsigned int length, const char *want,
		   unsigned int want_length)
{
	if (length == want_length && !memcmp(got, want, length) && !got[length])
		return;
	failures++;
	printf("%s: got \"%.*s\" (%u), expected \"%.*s\" (%u)\n", name, (int)length, got, length,
	       (int)want_length, want, want_length);
}

/* A buffer that is being filled with bytecode or payload. */
struct bytes {
	unsigned char at[4096];
	unsigned int count;
};

static void add(struct bytes *b, uint64_t value, unsigned int size)
{
	memcpy(b->at + b->count, &value, size);
	b->count += size;
}

static void add_literal(struct bytes *b, unsigned char op, const char *text)
{
	add(b, op, 1);
	add(b, strlen(text), 2);
	memcpy(b->at + b->count, text, strlen(text));
	b->count += strlen(text);
}

static void add_string(struct bytes *payload, const char *text, unsigned int length)
{
	add(payload, length, 4);
	memcpy(payload->at + payload->count, text, length);
	payload->count += length;
	while (payload->count % 8)
		payload->at[payload->count++] = 0;
}

/* Compiles a format of printf to bytecode; only the directives that the cases below use. */
static void compile(struct bytes *code, const char *format)
{
	char literal[256];

	code->count = 0;
	while (*format) {
		unsigned int n = 0, flags = 0, width = 0, precision = 0, width_kind = 0,
			     precision_kind = 0;

		while (*format && *format != '%')
			literal[n++] = *format++;
		literal[n] = 0;
		if (n)
			add_literal(code, SPILE_FORMAT_LITERAL, literal);
		if (!*format++)
			break;
		for (;; format++) {
			if (*format == '0')
				flags |= SPILE_FLAG_ZERO;
			else if (*format == '+')
				flags |= SPILE_FLAG_PLUS;
			else if (*format == '-')
				flags |= SPILE_FLAG_MINUS;
			else if (*format == ' ')
				flags |= SPILE_FLAG_SPACE;
			else if (*format == '#')
				flags |= SPILE_FLAG_SHARP;
			else
				break;
		}
		if (*format == '*') {
			width_kind = SPILE_SIZE_STAR;
			format++;
		} else if (*format >= '1' && *format <= '9') {
			width_kind = SPILE_SIZE_FIXED;
			width = strtoul(format, (char **)&format, 10);
		}
		if (*format == '.') {
			format++;
			if (*format == '*') {
				precision_kind = SPILE_SIZE_STAR;
				format++;
			} else {
				precision_kind = SPILE_SIZE_FIXED;
				precision = strtoul(format, (char **)&format, 10);
			}
		}
		add(code, SPILE_FORMAT_DIRECTIVE, 1);
		add(code, *format++, 1);
		add(code, flags, 1);
		add(code, width_kind, 1);
		add(code, precision_kind, 1);
		add(code, width, 4);
		add(code, precision, 4);
	}
}

/* What a format has as number 0. */
static struct spile_description object;

static void run(const char *name, const struct bytes *code, const struct bytes *payload,
		unsigned int room, const char *want, unsigned int want_length)
{
	char out[512];
	unsigned int length;

	memset(out, 'Z', sizeof(out));
	length = spile_format_render(code->at, code->count, &object, 1,
				     (const char *)payload->at,
				     (const char *)payload->at + payload->count, out, room);
	expect(name, out, length, want, want_length);
	if (out[length + 1] != 'Z')
		failures++, printf("%s: wrote beyond its end\n", name);
}

static void numbers(const char *format, int64_t a, int64_t b, const char *want,
		    unsigned int want_length)
{
	struct bytes code = { .count = 0 }, payload = { .count = 0 };

	compile(&code, format);
	add(&payload, a, 8);
	add(&payload, b, 8);
	run(format, &code, &payload, 256, want, want_length);
}
#define NUMBER(format, a, want) numbers(format, a, 0, want, sizeof(want) - 1)
#define NUMBERS(format, a, b, want) numbers(format, a, b, want, sizeof(want) - 1)

static void string(const char *format, const char *text, unsigned int room, const char *want)
{
	struct bytes code = { .count = 0 }, payload = { .count = 0 };

	compile(&code, format);
	add_string(&payload, text, strlen(text));
	run(format, &code, &payload, room, want, strlen(want));
}

static void formats(void)
{
	NUMBER("[%d]", -5, "[-5]");
	NUMBER("[%i]", INT64_MIN, "[-9223372036854775808]");
	NUMBER("[%u]", -1, "[18446744073709551615]");
	NUMBER("[%05d]", 42, "[00042]");
	NUMBER("[%05d]", -42, "[-0042]");
	NUMBER("[%+d]", 42, "[+42]");
	NUMBER("[% d]", 42, "[ 42]");
	NUMBER("[%5d]", 42, "[   42]");
	NUMBER("[%-5d]", 42, "[42   ]");
	NUMBER("[%.4d]", 42, "[0042]");
	NUMBER("[%.0d]", 0, "[0]");
	NUMBER("[%8.4d]", -42, "[   -0042]");
	NUMBER("[%x]", 255, "[ff]");
	NUMBER("[%X]", 255, "[FF]");
	NUMBER("[%#x]", 255, "[0xff]");
	NUMBER("[%#x]", 0, "[0x0]");
	NUMBER("[%#X]", 255, "[0XFF]");
	NUMBER("[%#8x]", 255, "[    0xff]");
	NUMBER("[%o]", 8, "[10]");
	NUMBER("[%#o]", 8, "[010]");
	NUMBER("[%o]", -1, "[1777777777777777777777]");
	NUMBER("[%p]", 0xabc, "[0xabc]");
	NUMBER("[%p]", 0, "[0x0]");
	NUMBER("[%12p]", 0xabc, "[       0xabc]");
	NUMBER("[%c]", 'A', "[A]");
	NUMBER("[%c]", 0, "[\0]");
	NUMBER("[%3c]", 'A', "[  A]");
	NUMBER("[%#c]", '\n', "[\\n]");
	NUMBER("[%#c]", 1, "[\\001]");
	NUMBER("[%#c]", '\'', "[\\']");
	NUMBER("[%#c]", '\\', "[\\\\]");
	NUMBER("[%#c]", '"', "[\"]");
	NUMBER("[%1b]", 0x4142, "[B]");
	NUMBER("[%2b]", 0x4142, "[BA]");
	NUMBER("[%b]", 0x4847464544434241, "[ABCDEFGH]");
	NUMBERS("[%*d]", 5, 42, "[   42]");
	NUMBERS("[%*d]", -5, 42, "[42   ]");
	NUMBERS("[%.*d]", 4, 42, "[0042]");
	NUMBERS("[%.*d]", -4, 42, "[42]");
	NUMBERS("%d-%d", 1, 2, "1-2");
	NUMBERS("%d %d %d", 1, 2, "1 2 ");	/* the payload ends early */

	string("[%s]", "abc", 256, "[abc]");
	string("[%5s]", "abc", 256, "[  abc]");
	string("[%-5s]", "abc", 256, "[abc  ]");
	string("[%.2s]", "abc", 256, "[ab]");
	string("[%5.2s]", "abc", 256, "[   ab]");
	string("[%s]", "", 256, "[]");
	string("[%m]", "ab", 256, "[ab]");
	string("[%M]", "\x01\xfe", 256, "[01fe]");
	string("[%6M]", "\x01\xfe", 256, "[  01fe]");
	string("[%s]", "abcdefgh", 6, "[abcd");	/* cut, one byte for the NUL */
	string("[%s]", "abcdefgh", 1, "");
}

/* A width of 2^63 must neither hang nor overflow. */
static void extremes(void)
{
	struct bytes code = { .count = 0 }, payload = { .count = 0 };

	compile(&code, "%*d");
	add(&payload, INT64_MAX, 8);
	add(&payload, 7, 8);
	run("huge width", &code, &payload, 5, "    ", 4);

	payload.count = 0;
	add(&payload, INT64_MIN, 8);
	add(&payload, 7, 8);
	run("hugely negative width", &code, &payload, 5, "7   ", 4);
}

static void add_integer(struct bytes *code, unsigned int offset, unsigned int size,
			unsigned int first, unsigned int bits, unsigned int style)
{
	add(code, SPILE_PRETTY_INTEGER, 1);
	add(code, offset, 4);
	add(code, size, 1);
	add(code, first, 1);
	add(code, bits, 1);
	add(code, style, 1);
}

static void render(const char *name, const struct bytes *description, const struct bytes *payload,
		   const char *want)
{
	struct bytes code = { .count = 0 };

	object = (struct spile_description){ description->at, description->count };
	add(&code, SPILE_FORMAT_DESCRIBED, 1);
	add(&code, 0, 4);
	run(name, &code, payload, 400, want, strlen(want));
}

struct sample {
	int32_t number;
	uint8_t letter;
	uint8_t fields;		/* low 3 bits signed, next 5 unsigned */
	uint16_t half;
	char name[8];
	uint64_t text, null, bad;
	uint64_t handler;
	struct { uint16_t a, b; } pair[2];
};

static void describe(struct bytes *d)
{
	d->count = 0;
	add(d, sizeof(struct sample), 4);
	add_literal(d, SPILE_PRETTY_LITERAL, "{.number=");
	add_integer(d, offsetof(struct sample, number), 4, 0, 0, SPILE_STYLE_SIGNED);
	add_literal(d, SPILE_PRETTY_LITERAL, ", .letter=");
	add_integer(d, offsetof(struct sample, letter), 1, 0, 0, SPILE_STYLE_CHAR);
	add_literal(d, SPILE_PRETTY_LITERAL, ", .low=");
	add_integer(d, offsetof(struct sample, fields), 1, 0, 3, SPILE_STYLE_SIGNED);
	add_literal(d, SPILE_PRETTY_LITERAL, ", .high=");
	add_integer(d, offsetof(struct sample, fields), 1, 3, 5, SPILE_STYLE_UNSIGNED);
	add_literal(d, SPILE_PRETTY_LITERAL, ", .half=");
	add_integer(d, offsetof(struct sample, half), 2, 0, 0, SPILE_STYLE_HEX);
	add_literal(d, SPILE_PRETTY_LITERAL, ", .name=");
	add(d, SPILE_PRETTY_CHARS, 1);
	add(d, offsetof(struct sample, name), 4);
	add(d, 8, 4);
	add_literal(d, SPILE_PRETTY_LITERAL, ", .text=");
	add(d, SPILE_PRETTY_STRING_POINTER, 1);
	add(d, offsetof(struct sample, text), 4);
	add_literal(d, SPILE_PRETTY_LITERAL, ", .null=");
	add(d, SPILE_PRETTY_STRING_POINTER, 1);
	add(d, offsetof(struct sample, null), 4);
	add_literal(d, SPILE_PRETTY_LITERAL, ", .bad=");
	add(d, SPILE_PRETTY_STRING_POINTER, 1);
	add(d, offsetof(struct sample, bad), 4);
	add_literal(d, SPILE_PRETTY_LITERAL, ", .handler=");
	add_integer(d, offsetof(struct sample, handler), 8, 0, 0, SPILE_STYLE_FUNCTION);
	add_literal(d, SPILE_PRETTY_LITERAL, ", .f=");
	add(d, SPILE_PRETTY_UNKNOWN, 1);
	add_literal(d, SPILE_PRETTY_LITERAL, ", .pair=[");
	add(d, SPILE_PRETTY_REPEAT, 1);
	add(d, offsetof(struct sample, pair), 4);
	add(d, 2, 4);
	add(d, 4, 4);
	{
		struct bytes body = { .count = 0 };

		add_literal(&body, SPILE_PRETTY_LITERAL, "{.a=");
		add_integer(&body, 0, 2, 0, 0, SPILE_STYLE_UNSIGNED);
		add_literal(&body, SPILE_PRETTY_LITERAL, ", .b=");
		add_integer(&body, 2, 2, 0, 0, SPILE_STYLE_UNSIGNED);
		add_literal(&body, SPILE_PRETTY_LITERAL, "}");
		add(&body, SPILE_PRETTY_END, 1);
		add(d, body.count, 4);
		memcpy(d->at + d->count, body.at, body.count);
		d->count += body.count;
	}
	add_literal(d, SPILE_PRETTY_LITERAL, "]}");
	add(d, SPILE_PRETTY_END, 1);
}

static void pretty(void)
{
	struct sample sample = {
		.number = -3, .letter = '\n', .fields = 0xff, .half = 0xbeef, .name = "a\"b",
		.text = 1, .null = 0, .bad = 2, .handler = 0x1234, .pair = { { 1, 2 }, { 3, 4 } },
	};
	struct bytes d = { .count = 0 }, payload = { .count = 0 }, unknown = { .count = 0 };
	unsigned int i;
	char out[64];

	describe(&d);
	add_string(&payload, (const char *)&sample, sizeof(sample));
	add_string(&payload, "tab\t", 4);
	add_string(&payload, "", 0);
	add(&payload, SPILE_FAULT, 8);
	render("object", &d, &payload,
	       "{.number=-3, .letter='\\n', .low=-1, .high=31, .half=0xbeef, .name=\"a\\\"b\", .text=\"tab\\t\", "
	       ".null=0x0, .bad=0x2, .handler=<function>:0x1234, .f=?, .pair=[{.a=1, .b=2}, {.a=3, .b=4}]}");

	payload.count = 0;
	add(&payload, SPILE_FAULT, 8);
	render("unreadable object", &d, &payload, "ERROR");

	/* Malformed input must not be read beyond its end; the sanitizers check that. */
	for (i = 0; i < d.count; i++) {
		struct bytes cut = d;
		struct bytes code = { .count = 0 };

		cut.count = i;
		payload.count = 0;
		add_string(&payload, (const char *)&sample, sizeof(sample));
		object = (struct spile_description){ cut.at, cut.count };
		add(&code, SPILE_FORMAT_DESCRIBED, 1);
		add(&code, 0, 4);
		spile_format_render(code.at, code.count, &object, 1, (const char *)payload.at,
				    (const char *)payload.at + payload.count, out, sizeof(out));
	}

	/* A number without a description. */
	payload.count = 0;
	add_string(&payload, (const char *)&sample, sizeof(sample));
	add_literal(&unknown, SPILE_FORMAT_LITERAL, "[");
	add(&unknown, SPILE_FORMAT_DESCRIBED, 1);
	add(&unknown, 1, 4);
	add_literal(&unknown, SPILE_FORMAT_LITERAL, "]");
	run("no description", &unknown, &payload, 400, "[", 1);

	/* An offset outside the object. */
	d.count = 0;
	add(&d, 4, 4);
	add_integer(&d, 1, 4, 0, 0, SPILE_STYLE_SIGNED);
	payload.count = 0;
	add_string(&payload, "1234", 4);
	render("offset outside", &d, &payload, "ERROR");
}

static void texts(void)
{
	char out[16];
	unsigned int length;

	length = spile_text_quote(out, sizeof(out), "ab\"\x80", 4);
	expect("quote", out, length, "\"ab\\\"\\200\"", 10);
	length = spile_text_quote(out, sizeof(out), "abcdefghijklmnop", 16);
	expect("quote, cut", out, length, "\"abcdefghij\"...", 15);
	length = spile_text_quote(out, sizeof(out), "abcdefghijklm", 13);
	expect("quote, just fits", out, length, "\"abcdefghijklm\"", 15);
	length = spile_text_quote(out, sizeof(out), "abcdefghi\001\001", 11);
	expect("quote, cut before an escape", out, length, "\"abcdefghi\"...", 14);
	length = spile_text_quote(out, 6, "abcd", 4);
	expect("quote, least room", out, length, "\"\"...", 5);
	length = spile_text_escape(out, 6, "a\nb\001", 4);
	expect("escape, none cut in half", out, length, "a\\nb", 4);
	length = spile_text_escape(out, sizeof(out), "\xc3\xa9\xc3x", 4);
	expect("escape UTF-8, and what is none", out, length, "\\u00E9\\303x", 11);
	length = spile_text_escape(out, sizeof(out), "\xf0\x9f\x98\x80\xc0\x80", 6);
	expect("escape what is longer than need be", out, length, "\\U0001F600\\300", 14);
	length = spile_text_escape(out, 8, "a\xc3\xa9\xc3\xa9", 5);
	expect("escape UTF-8, none cut in half", out, length, "a\\u00E9", 7);
	length = spile_text_escape(out, sizeof(out), "\xe2\x82", 2);
	expect("escape UTF-8 that is cut off", out, length, "\\342\\202", 8);
	length = spile_text_quote(out, sizeof(out), "", 0);
	expect("quote nothing", out, length, "\"\"", 2);
}

static void expect_range(unsigned long address, unsigned long bytes, unsigned int bits, int want)
{
	if (spile_is_kernel_range(address, bytes, bits, 0xffffffffff000000ul) == want)
		return;
	failures++;
	printf("kernel range: %#lx, %lu bytes, %u bits: expected %d\n", address, bytes, bits, want);
}

static void kernel_ranges(void)
{
	expect_range(0xffff888000000000ul, 8, 48, 1);
	expect_range(0xffff800000000000ul, 1, 48, 1);
	expect_range(0xffff7ffffffffffful, 1, 48, 0);
	expect_range(0xff00000000000000ul, 8, 48, 0);
	expect_range(0xff00000000000000ul, 8, 57, 1);
	expect_range(0xfefffffffffffffful, 8, 57, 0);
	expect_range(0x00007ffffffffffful, 8, 48, 0);
	expect_range(0, 8, 48, 0);
	/* The end of the modules: before it, across it, behind it. */
	expect_range(0xfffffffffefffff8ul, 8, 48, 1);
	expect_range(0xfffffffffefffff9ul, 8, 48, 0);
	expect_range(0xfffffffffefffffful, 1, 48, 1);
	expect_range(0xffffffffff000000ul, 1, 48, 0);
	expect_range(0xffffffffff5fd000ul, 8, 48, 0);
	expect_range(0xffffffffff600000ul, 1, 48, 0);
	expect_range(0xfffffffffefff000ul, 0x1000000, 48, 0);
	/* The end of memory. */
	expect_range(0xfffffffffffffff8ul, 8, 48, 0);
	expect_range(0xfffffffffffffff9ul, 8, 48, 0);
	expect_range(0xffff888000000000ul, ~0ul, 48, 0);
}

int main(void)
{
	kernel_ranges();
	formats();
	extremes();
	pretty();
	texts();
	return failures != 0;
}
