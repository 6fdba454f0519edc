// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Builtins about stacks and symbols. Names are from the running kernel's kallsyms, which can be
 * searched in any context. Stacks that are printed are records of addresses, which the loader
 * resolves. User stacks are in builtin_user_stack.c.
 */
#include <linux/ctype.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "script.h"
#include "builtins.h"
#include "context.h"
#include "features.h"
#include "guard.h"
#include "hex_text.h"
#include "hit_address.h"
#include "lines.h"
#include "past_code.h"
#include "ring.h"
#include "stack.h"
#include "symbol.h"
#include "text.h"
#include "user_stack.h"

/* Charges for unwinding a stack, a lookup in kallsyms, and an address of a text. */
enum { WALK_STEPS = 512, NAME_STEPS = 256, ADDRESS_STEPS = 8 };

/* As spile_symbol_text(), charged. */
static const char *describe(struct spile_context *c, unsigned long address)
{
	char *text = spile_cpu_of(c)->symbol;

	if (address) {
		spile_debit(c, NAME_STEPS);
		spile_symbol_text(text, address);
	} else {
		scnprintf(text, SPILE_SYMBOL_TEXT, "0x%lx", address);
	}
	return text;
}

static unsigned int return_text(char *out, const char *text, size_t length)
{
	return spile_string_copy(
		out, (struct spile_string){ text,
					    min_t(size_t, length, spile_script.string_bytes - 1) });
}

unsigned int spile_fn_symdata(struct spile_context *c, spile_long address, char *out)
{
	const char *text = describe(c, address);

	return return_text(out, text, strlen(text));
}

unsigned int spile_fn_symname(struct spile_context *c, spile_long address, char *out)
{
	const char *text = describe(c, address);

	return return_text(out, text, strcspn(text, "+"));
}

/* "kernel", a module's name, or "<unknown>". */
unsigned int spile_fn_modname(struct spile_context *c, spile_long address, char *out)
{
	const char *text = describe(c, address);
	const char *open = strchr(text, '[');

	if (!open)
		return return_text(out, "<unknown>", 9);
	return return_text(out, open + 1, strcspn(open + 1, " ]"));
}

/*
 * Where the probe was hit, of those whose hits are wherever the CPU is; else, and if that is not
 * known, 0: other probes have the registers of what they interrupt or of the kernel's own code.
 */
static unsigned long hit_address(struct spile_context *c)
{
	struct pt_regs *regs;

	switch (c->probe->kind) {
	case SPILE_PROBE_PERF:
	case SPILE_PROBE_WATCH:
	case SPILE_PROBE_USER_WATCH:
		regs = spile_registers(c);
		return regs ? spile_hit_address(c, regs) : 0;
	default:
		return 0;
	}
}

unsigned int spile_fn_hit_function(struct spile_context *c, char *out)
{
	const char *function = c->probe->function;
	unsigned long address;

	if (*function)
		return return_text(out, function, strlen(function));
	address = hit_address(c);
	return address ? spile_fn_symname(c, address, out) : return_text(out, "", 0);
}

unsigned int spile_fn_hit_module(struct spile_context *c, char *out)
{
	const char *module = c->probe->module;
	unsigned long address;

	if (*c->probe->function)
		return return_text(out, module, strlen(module));
	address = hit_address(c);
	return address ? spile_fn_modname(c, address, out) : return_text(out, module, strlen(module));
}

static unsigned int frames_of(struct spile_context *c, const unsigned long **frames)
{
	spile_debit(c, WALK_STEPS);
	return spile_stack_kernel(c, frames);
}

spile_long spile_fn___stack_at(struct spile_context *c, spile_long depth)
{
	const unsigned long *frames;
	unsigned int count = frames_of(c, &frames);

	return depth >= 0 && depth < count ? (spile_long)frames[depth] : 0;
}

spile_long spile_fn___value_unknown_at_caller(struct spile_context *c)
{
	spile_fail_text(
		c,
		"this caller's debug information does not give the value: take it at the function's entry");
	return 0;
}

/* Separates an address from the number of its code (past_code.h). */
enum { NUMBER_MARK = '@' };

/* Writes the number of the address's code, which most addresses do not have. Returns the length. */
static unsigned int number_text(unsigned long address, char *text, size_t size)
{
	u64 number = spile_code_number(address);

	return number ? scnprintf(text, size, "%c%llu", NUMBER_MARK, number) : 0;
}

/* Writes addresses in hex, separated by blanks. Only whole ones are written. */
static unsigned int put_frames(struct spile_context *c, const unsigned long *frames,
			       unsigned int count, char *out)
{
	unsigned int length = 0, i;
	char number[24];

	for (i = 0; i < count; i++) {
		unsigned int bytes = spile_hex_bytes(frames[i]), blank = length > 0;
		unsigned int more = number_text(frames[i], number, sizeof(number));

		if (length + blank + bytes + more >= spile_script.string_bytes) {
			spile_cpu_of(c)->stacks_cut++;
			break;
		}
		if (blank)
			out[length++] = ' ';
		spile_put_hex(out + length, frames[i]);
		memcpy(out + length + bytes, number, more);
		length += bytes + more;
	}
	out[length] = 0;
	return length;
}

/* The frames from `first` on, at most `most` (below 0: all); returns their number. */
static unsigned int part_of_stack(struct spile_context *c, spile_long first, spile_long most,
				  const unsigned long **frames)
{
	unsigned int count = frames_of(c, frames);

	*frames += spile_stack_part(first, most, &count);
	return count;
}

unsigned int spile_fn___stack_addresses(struct spile_context *c, spile_long first, spile_long most,
					char *out)
{
	const unsigned long *frames;
	unsigned int count = part_of_stack(c, first, most, &frames);

	return put_frames(c, frames, count, out);
}

/* Writes a memory part of a record. */
static char *put_addresses(char *at, const unsigned long *frames, unsigned int count)
{
	return spile_put_string(at, (struct spile_string){ (const char *)frames,
							   count * sizeof(*frames) });
}

char *spile_put_stack(struct spile_context *c, char *at, int user, spile_long first,
		      spile_long most)
{
	const unsigned long *frames;
	unsigned int count;

	if (!at)
		return NULL;
	if (user)
		return spile_put_user_addresses(c, at, first, most);
	count = part_of_stack(c, first, most, &frames);
	return put_addresses(at, frames, count);
}

unsigned int spile_fn_task_backtrace(struct spile_context *c, spile_long task, char *out)
{
	const unsigned long *frames;
	unsigned int count;

	spile_debit(c, WALK_STEPS);
	count = spile_stack_task(c, task, &frames);
	return put_frames(c, frames, count, out);
}

/* One record, so that the lines stay together; none for a stack without frames. */
static void print(struct spile_context *c, u32 flags, const unsigned long *frames,
		  unsigned int count)
{
	const char *function = c->probe->function;
	struct spile_string from = { function,
				     flags & SPILE_STACK_RETURNING ? strlen(function) : 0 };
	char *at;

	if (!count)
		return;
	at = spile_record_begin(c, SPILE_RECORD_PRINT, SPILE_FORMAT_STACK,
				8 + SPILE_STRING_PART(from.length) + SPILE_STRING_PART(8 * count));
	at = spile_put_long(at, flags);
	if (flags & SPILE_STACK_RETURNING)
		at = spile_put_string(at, from);
	spile_record_commit(c, put_addresses(at, frames, count));
}

static void print_stack(struct spile_context *c, u32 flags)
{
	bool returning = c->probe->kind == SPILE_PROBE_KRETPROBE;
	const unsigned long *frames;
	unsigned int count = frames_of(c, &frames);

	if (returning && flags & SPILE_STACK_FULL)
		flags |= SPILE_STACK_RETURNING;
	else if (!returning && spile_registers(c))
		flags |= SPILE_STACK_AT_PROBE;
	print(c, flags, frames, count);
}

void spile_fn___print_stack(struct spile_context *c, spile_long full)
{
	print_stack(c, full ? SPILE_STACK_FULL : 0);
}

void spile_fn___print_stack_lines(struct spile_context *c)
{
	print_stack(c, SPILE_STACK_FULL | SPILE_STACK_LINES);
}

/*
 * The next address in a string, as backtrace() makes it, with the number of its code, or 0;
 * false at its end, or at text that is not an address.
 */
static bool next_address(struct spile_string *rest, unsigned long *address, u64 *number)
{
	const char *at = rest->text, *end = at + rest->length, *digit;

	for (; at < end && *at == ' '; at++)
		;
	if (end - at > 2 && at[0] == '0' && (at[1] | 0x20) == 'x')
		at += 2;
	*address = 0;
	*number = 0;
	for (digit = at; digit < end && isxdigit(*digit); digit++)
		*address = *address << 4 | hex_to_bin(*digit);
	if (digit > at && digit < end && *digit == NUMBER_MARK)
		for (digit++; digit < end && isdigit(*digit); digit++)
			*number = *number * 10 + *digit - '0';
	*rest = (struct spile_string){ digit, end - digit };
	return digit > at;
}

static unsigned int count_addresses(struct spile_string addresses)
{
	unsigned long address;
	unsigned int count = 0;
	u64 number;

	while (next_address(&addresses, &address, &number))
		count++;
	return count;
}

/* The number of addresses, charged. */
static unsigned int charge_addresses(struct spile_context *c, struct spile_string addresses)
{
	unsigned int count = count_addresses(addresses);

	spile_debit(c, addresses.length / 8 + ADDRESS_STEPS * count);
	return count;
}

unsigned int spile_stored_part(struct spile_context *c, struct spile_string addresses)
{
	return SPILE_STRING_PART(charge_addresses(c, addresses) * 16);
}

/* Writes a memory part of `count` addresses; timed: each with its time. */
static char *put_stored(char *at, struct spile_string addresses, unsigned int count, bool timed)
{
	u32 bytes = count * (timed ? 16 : 8);
	unsigned long address;
	u64 number, time;

	memcpy(at, &bytes, sizeof(bytes));
	at += sizeof(bytes);
	while (next_address(&addresses, &address, &number)) {
		memcpy(at, &address, sizeof(address));
		at += sizeof(address);
		if (!timed)
			continue;
		time = spile_past_code_time(address, number);
		memcpy(at, &time, sizeof(time));
		at += sizeof(time);
	}
	memset(at, 0, 4);
	return at + 4;
}

char *spile_put_stored_stack(char *at, struct spile_string addresses)
{
	return at ? put_stored(at, addresses, count_addresses(addresses), true) : NULL;
}

void spile_fn___print_addresses(struct spile_context *c, struct spile_string addresses)
{
	unsigned int count = charge_addresses(c, addresses);
	bool stored = spile_past_code_any();
	char *at;

	if (!count)
		return;
	at = spile_record_begin(c, SPILE_RECORD_PRINT, SPILE_FORMAT_STACK,
				8 + SPILE_STRING_PART(count * (stored ? 16 : 8)));
	if (!at)
		return;
	at = spile_put_long(at, SPILE_STACK_FULL | (stored ? SPILE_STACK_STORED : 0));
	spile_record_commit(c, put_stored(at, addresses, count, stored));
}

static void put_line(struct spile_text *text, struct spile_context *c, unsigned long address)
{
	spile_text_literal(text, describe(c, address));
	spile_text_byte(text, '\n');
}

static struct spile_text buffer(struct spile_context *c)
{
	return spile_text_in(spile_cpu_of(c)->stack_text, SPILE_STACK_TEXT);
}

static unsigned int return_buffer(struct spile_context *c, struct spile_text *text, char *out)
{
	return return_text(out, spile_cpu_of(c)->stack_text, spile_text_end(text));
}

unsigned int spile_fn___sprint_stack(struct spile_context *c, char *out)
{
	struct spile_text text = buffer(c);
	const unsigned long *frames;
	unsigned int count = frames_of(c, &frames), i;

	for (i = 0; i < count; i++)
		put_line(&text, c, frames[i]);
	return return_buffer(c, &text, out);
}

unsigned int spile_fn___sprint_addresses(struct spile_context *c, struct spile_string addresses,
					 char *out)
{
	struct spile_text text = buffer(c);
	char *name = spile_cpu_of(c)->symbol;
	unsigned long address;
	u64 number;

	while (text.at < text.end && next_address(&addresses, &address, &number)) {
		if (!spile_charge_steps(c, NAME_STEPS))
			return 0;
		spile_stored_symbol_text(name, address, number);
		spile_text_literal(&text, name);
		spile_text_byte(&text, '\n');
	}
	return return_buffer(c, &text, out);
}

static bool find_line(struct spile_context *c, unsigned long address, struct spile_line *line)
{
	return spile_line_in_kernel(address, line) ||
	       spile_line_in_module(describe(c, address), line);
}

/* part: 0 file:line, 1 file, 2 line. Without line information: the address in hex. */
unsigned int spile_fn___symbol_line(struct spile_context *c, spile_long address, spile_long part,
				    char *out)
{
	struct spile_line line;

	if (!find_line(c, address, &line))
		return scnprintf(out, spile_script.string_bytes, "0x%llx", address);
	if (part == 2)
		return scnprintf(out, spile_script.string_bytes, "%u", line.line);
	if (part == 1)
		return scnprintf(out, spile_script.string_bytes, "%s", line.file);
	return scnprintf(out, spile_script.string_bytes, "%s:%u", line.file, line.line);
}
