// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Builtins about stacks and symbols. Names are the running kernel's own
 * (kallsyms), which may be asked in any context. Addresses of user space have no
 * names here.
 */
#include <linux/ctype.h>
#include <linux/kallsyms.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "script.h"
#include "builtins.h"
#include "context.h"
#include "lines.h"
#include "ring.h"
#include "stack.h"
#include "text.h"

/* "name+offset/size [module]"; "0xADDRESS" where there is none. */
static const char *describe(struct spile_context *c, unsigned long address, bool kernel)
{
	char *text = spile_cpu_of(c)->symbol;

	BUILD_BUG_ON(KSYM_SYMBOL_LEN + sizeof(" [kernel]") > SPILE_SYMBOL_BYTES);
	if (!kernel || !address) {
		scnprintf(text, SPILE_SYMBOL_BYTES, "0x%lx", address);
		return text;
	}
	sprint_symbol(text, address);
	if (!strstarts(text, "0x") && !strchr(text, '['))
		strlcat(text, " [kernel]", SPILE_SYMBOL_BYTES);
	return text;
}

static unsigned int give(char *out, const char *text, size_t length)
{
	return spile_string_copy(out, (struct spile_string){ text, min_t(size_t, length, spile_script.string_bytes - 1) });
}

unsigned int spile_fn_symdata(struct spile_context *c, spile_long address, char *out)
{
	const char *text = describe(c, address, true);

	return give(out, text, strlen(text));
}

unsigned int spile_fn_symname(struct spile_context *c, spile_long address, char *out)
{
	const char *text = describe(c, address, true);

	return give(out, text, strcspn(text, "+"));
}

/* "kernel", a module's name, or "<unknown>". */
unsigned int spile_fn_modname(struct spile_context *c, spile_long address, char *out)
{
	const char *text = describe(c, address, true);
	const char *open = strchr(text, '[');

	if (!open)
		return give(out, "<unknown>", 9);
	return give(out, open + 1, strcspn(open + 1, " ]"));
}

static unsigned int frames_of(struct spile_context *c, spile_long user, const unsigned long **frames)
{
	return user ? spile_stack_user(c, frames) : spile_stack_kernel(c, frames);
}

spile_long spile_fn___stack_at(struct spile_context *c, spile_long user, spile_long depth)
{
	const unsigned long *frames;
	unsigned int count = frames_of(c, user, &frames);

	return depth >= 0 && depth < count ? (spile_long)frames[depth] : 0;
}

/* In hex with blanks between them. Whole ones only. */
static unsigned int put_frames(const unsigned long *frames, unsigned int count, char *out)
{
	unsigned int length = 0, i;

	out[0] = 0;
	for (i = 0; i < count; i++) {
		char one[24];
		unsigned int bytes = scnprintf(one, sizeof(one), "%s0x%lx", length ? " " : "", frames[i]);

		if (length + bytes >= spile_script.string_bytes)
			break;
		memcpy(out + length, one, bytes + 1);
		length += bytes;
	}
	return length;
}

/* Addresses from `first` on, at most `most` (below 0: all). */
unsigned int spile_fn___stack_addresses(struct spile_context *c, spile_long user, spile_long first, spile_long most, char *out)
{
	const unsigned long *frames;
	unsigned int count = frames_of(c, user, &frames);
	unsigned int from = clamp_t(spile_long, first, 0, count);

	count -= from;
	return put_frames(frames + from, most < 0 ? count : min_t(spile_long, most, count), out);
}

unsigned int spile_fn_task_backtrace(struct spile_context *c, spile_long task, char *out)
{
	const unsigned long *frames;
	unsigned int count = spile_stack_task(c, task, &frames);

	return put_frames(frames, count, out);
}

/* What there is to say of a frame. */
enum frame_form { FRAME_BRIEF, FRAME_FULL, FRAME_LINE };

/* A return address is behind the call: its line is that of the byte before. */
static void put_source(struct spile_text *text, struct spile_context *c, unsigned long address, bool returns)
{
	struct spile_line line;
	char number[16];

	if (!spile_line_find(c, address - returns, &line))
		return;
	spile_text_literal(text, " at ");
	spile_text_literal(text, line.file);
	scnprintf(number, sizeof(number), ":%u", line.line);
	spile_text_literal(text, number);
}

static void put_frame(struct spile_text *text, struct spile_context *c, unsigned long address, bool returns)
{
	char head[32], *module = NULL;
	char *what;

	scnprintf(head, sizeof(head), " 0x%lx : ", address);
	spile_text_literal(text, head);
	what = (char *)describe(c, address, true);
	/* The module is said behind the line. */
	module = strstr(what, " [");
	if (module)
		*module = 0;
	spile_text_literal(text, what);
	put_source(text, c, address, returns);
	if (module) {
		module = strchr(describe(c, address, true), '[');
		spile_text_byte(text, ' ');
		spile_text_literal(text, module ? module : "");
	}
	spile_text_byte(text, '\n');
}

static void put_line(struct spile_text *text, struct spile_context *c, unsigned long address, bool kernel, bool full)
{
	if (full) {
		char head[32];

		scnprintf(head, sizeof(head), " 0x%lx : ", address);
		spile_text_literal(text, head);
	}
	spile_text_literal(text, describe(c, address, kernel));
	spile_text_byte(text, '\n');
}

/* One line for each frame. */
static void put_stack(struct spile_text *text, struct spile_context *c, bool user, enum frame_form form)
{
	bool full = form != FRAME_BRIEF;
	const unsigned long *frames;
	unsigned int count = frames_of(c, user, &frames);
	unsigned int i = 0;

	if (full && !user && c->probe->kind == SPILE_PROBE_KRETPROBE && count) {
		spile_text_literal(text, "Returning from: ");
		spile_text_literal(text, c->probe->function);
		spile_text_literal(text, "\nReturning to  :");
		if (form == FRAME_LINE)
			put_frame(text, c, frames[i++], true);
		else
			put_line(text, c, frames[i++], true, true);
	}
	for (; i < count; i++) {
		/* All but the place of a probe with registers are return addresses. */
		if (form == FRAME_LINE)
			put_frame(text, c, frames[i], i || !spile_registers(c) || c->probe->kind == SPILE_PROBE_KRETPROBE);
		else
			put_line(text, c, frames[i], !user, full);
	}
}

/* Lines for the addresses in a string, as backtrace() makes it. */
static void put_addresses(struct spile_text *text, struct spile_context *c, struct spile_string addresses, bool user, bool full)
{
	const char *at = addresses.text, *end = at + addresses.length;

	while (at < end) {
		unsigned long address = 0;
		const char *digit;

		for (; at < end && *at == ' '; at++)
			;
		if (end - at > 2 && at[0] == '0' && (at[1] | 0x20) == 'x')
			at += 2;
		for (digit = at; digit < end && isxdigit(*digit); digit++)
			address = address << 4 | hex_to_bin(*digit);
		if (digit == at)
			break;
		at = digit;
		put_line(text, c, address, !user, full);
	}
}

static struct spile_text buffer(struct spile_context *c)
{
	return spile_text_in(spile_cpu_of(c)->stack_text, SPILE_STACK_TEXT);
}

/* As one record, so that it stays together. */
static void print(struct spile_context *c, struct spile_text *text)
{
	struct spile_string all = { spile_cpu_of(c)->stack_text, spile_text_end(text) };
	char *at;

	if (!all.length)
		return;
	at = spile_record_begin(c, SPILE_RECORD_PRINT, SPILE_FORMAT_TEXT, SPILE_STRING_PART(all.length));
	if (at)
		spile_record_commit(c, spile_put_string(at, all));
}

void spile_fn___print_stack(struct spile_context *c, spile_long user, spile_long full)
{
	struct spile_text text = buffer(c);

	put_stack(&text, c, user, full ? FRAME_FULL : FRAME_BRIEF);
	print(c, &text);
}

void spile_fn___print_stack_lines(struct spile_context *c)
{
	struct spile_text text = buffer(c);

	put_stack(&text, c, false, FRAME_LINE);
	print(c, &text);
}

/* part: 0 file:line, 1 file, 2 line. The address in hex where no line is known. */
unsigned int spile_fn___symbol_line(struct spile_context *c, spile_long address, spile_long part, char *out)
{
	struct spile_line line;

	if (!spile_line_find(c, address, &line))
		return scnprintf(out, spile_script.string_bytes, "0x%llx", address);
	if (part == 2)
		return scnprintf(out, spile_script.string_bytes, "%u", line.line);
	if (part == 1)
		return scnprintf(out, spile_script.string_bytes, "%s", line.file);
	return scnprintf(out, spile_script.string_bytes, "%s:%u", line.file, line.line);
}

void spile_fn___print_user_stack(struct spile_context *c, spile_long pc, spile_long fp)
{
	struct spile_text text = buffer(c);
	const unsigned long *frames;
	unsigned int count = spile_stack_user_from(c, pc, fp, &frames), i;

	for (i = 0; i < count; i++)
		put_line(&text, c, frames[i], false, true);
	print(c, &text);
}

unsigned int spile_fn___sprint_stack(struct spile_context *c, spile_long user, char *out)
{
	struct spile_text text = buffer(c);

	put_stack(&text, c, user, FRAME_BRIEF);
	return give(out, spile_cpu_of(c)->stack_text, spile_text_end(&text));
}

void spile_fn___print_addresses(struct spile_context *c, spile_long user, struct spile_string addresses)
{
	struct spile_text text = buffer(c);

	put_addresses(&text, c, addresses, user, true);
	print(c, &text);
}

unsigned int spile_fn___sprint_addresses(struct spile_context *c, spile_long user, struct spile_string addresses, char *out)
{
	struct spile_text text = buffer(c);

	put_addresses(&text, c, addresses, user, false);
	return give(out, spile_cpu_of(c)->stack_text, spile_text_end(&text));
}
