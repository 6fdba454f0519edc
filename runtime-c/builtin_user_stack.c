// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Builtins for stacks and symbols of user space. The names are not in the module; the loader
 * reads them from the files. A printed stack is a record of frames, each with its file and its
 * offset there, so the loader can name them even if the process has ended.
 *
 * A stack as a value has the same data: "0xADDRESS@FILE+OFFSET ...", FILE in decimal, OFFSET in
 * hex; "0xADDRESS@0+PROCESS" for code without a file. Where a signal has come
 * (SPILE_PLACE_INTERRUPTED) the last number begins with a 0, as no other one does.
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
#include "ring.h"
#include "stack.h"
#include "text.h"
#include "user_files.h"
#include "user_maps.h"
#include "user_stack.h"

/* Charges for unwinding a stack, and for finding a mapping. */
enum { USER_WALK_STEPS = 512, USER_PLACE_STEPS = 32 };

enum { PLACE_MARK = '@', OFFSET_MARK = '+' };

static unsigned int user_frames(struct spile_context *c, const struct spile_user_frame **frames)
{
	spile_debit(c, USER_WALK_STEPS);
	return spile_stack_user(c, frames);
}

/* The frames from `first` on, at most `most` (below 0: all); returns their number. */
static unsigned int part_of_user_stack(struct spile_context *c, spile_long first, spile_long most,
				       const struct spile_user_frame **frames)
{
	unsigned int count = user_frames(c, frames);

	*frames += spile_stack_part(first, most, &count);
	return count;
}

spile_long spile_fn___user_stack_at(struct spile_context *c, spile_long depth)
{
	const struct spile_user_frame *frames;
	unsigned int count = user_frames(c, &frames);

	return depth >= 0 && depth < count ? (spile_long)frames[depth].address : 0;
}

/* Digits of a number in base 10 or 16, before `end`; returns where they begin. */
static char *put_number(char *end, u64 value, unsigned int base)
{
	do {
		*--end = hex_asc_lo(base == 16 ? value : value % 10);
		value = base == 16 ? value >> 4 : value / 10;
	} while (value);
	return end;
}

/* "@FILE+OFFSET", or nothing; returns its length. */
static unsigned int place_text(u64 place, char *out, size_t size)
{
	char *end = out + size, *at;

	if (!place)
		return 0;
	at = put_number(end, place & (SPILE_PLACE_INTERRUPTED - 1), 16);
	if (place & SPILE_PLACE_INTERRUPTED)
		*--at = '0';
	*--at = OFFSET_MARK;
	at = put_number(at, place >> SPILE_PLACE_SHIFT, 10);
	*--at = PLACE_MARK;
	memmove(out, at, end - at);
	return end - at;
}

static void make_frame_text(struct spile_frame_text *text, const struct spile_user_frame *frame)
{
	unsigned int bytes = spile_hex_bytes(frame->address);

	spile_put_hex(text->text, frame->address);
	text->length =
		bytes + place_text(frame->place, text->text + bytes, sizeof(text->text) - bytes);
	text->frame = *frame;
}

static inline bool is_text_of(const struct spile_frame_text *text,
			      const struct spile_user_frame *frame)
{
	return text->frame.address == frame->address && text->frame.place == frame->place &&
	       text->length;
}

/* The frame's text, made or found. Owner of the context. */
static const struct spile_frame_text *text_of_frame(struct spile_cpu *cpu,
					      const struct spile_user_frame *frame)
{
	u64 hash = frame->address * 0x9e3779b97f4a7c15ull;
	unsigned int at = hash >> (64 - SPILE_FRAME_TEXT_BITS);
	struct spile_frame_text *text = &cpu->frame_texts[at], *other;

	if (likely(is_text_of(text, frame)))
		return text;
	other = &cpu->frame_texts[at ^ 1];
	if (is_text_of(other, frame))
		return other;
	/* Two frames of one stack that have the same place stay where they are. */
	if (text->length)
		text = other;
	make_frame_text(text, frame);
	return text;
}

unsigned int spile_fn___user_stack_addresses(struct spile_context *c, spile_long first,
					     spile_long most, char *out)
{
	const struct spile_user_frame *frames;
	unsigned int count = part_of_user_stack(c, first, most, &frames);
	unsigned int length = 0, i;

	/* Only whole frames are written. */
	for (i = 0; i < count; i++) {
		const struct spile_frame_text *text = text_of_frame(spile_cpu_of(c), &frames[i]);
		unsigned int blank = length > 0, left = spile_script.string_bytes - length;

		if (blank + text->length >= left) {
			spile_cpu_of(c)->stacks_cut++;
			break;
		}
		if (blank)
			out[length++] = ' ';
		/* All of it, if there is room, because its size is a constant. */
		if (likely(sizeof(text->text) < left))
			memcpy(out + length, text->text, sizeof(text->text));
		else
			memcpy(out + length, text->text, text->length);
		length += text->length;
	}
	out[length] = 0;
	return length;
}

/* Writes a memory part of a record. */
static char *put_user_frames(char *at, const struct spile_user_frame *frames, unsigned int count)
{
	return spile_put_string(at, (struct spile_string){ (const char *)frames,
							   count * sizeof(*frames) });
}

char *spile_put_user_stack(struct spile_context *c, char *at)
{
	const struct spile_user_frame *frames;
	unsigned int count;

	if (!at)
		return NULL;
	count = user_frames(c, &frames);
	return put_user_frames(at, frames, count);
}

char *spile_put_user_addresses(struct spile_context *c, char *at, long long first, long long most)
{
	const struct spile_user_frame *frames;
	unsigned int count = part_of_user_stack(c, first, most, &frames), i;
	u32 bytes = count * sizeof(u64);

	memcpy(at, &bytes, sizeof(bytes));
	at += sizeof(bytes);
	for (i = 0; i < count; i++, at += sizeof(u64))
		memcpy(at, &frames[i].address, sizeof(u64));
	memset(at, 0, 4);
	return at + 4;
}

char *spile_put_user_frame(struct spile_context *c, char *at, spile_long address)
{
	struct spile_user_frame frame = { .address = address };

	if (!at)
		return NULL;
	spile_debit(c, USER_PLACE_STEPS);
	frame.place = spile_user_place(c, address);
	return put_user_frames(at, &frame, 1);
}

/* One record, so that the lines stay together; none for a stack without frames. */
static void print_frames(struct spile_context *c, u32 flags, const struct spile_user_frame *frames,
			 unsigned int count)
{
	char *at;

	if (!count)
		return;
	at = spile_record_begin(c, SPILE_RECORD_PRINT, SPILE_FORMAT_STACK,
				8 + SPILE_STRING_PART(count * sizeof(*frames)));
	at = spile_put_long(at, SPILE_STACK_OF_USER | SPILE_STACK_AT_PROBE | flags);
	spile_record_commit(c, put_user_frames(at, frames, count));
}

void spile_fn___print_user_stack(struct spile_context *c, spile_long flags)
{
	const struct spile_user_frame *frames;
	unsigned int count = user_frames(c, &frames);

	print_frames(c, flags, frames, count);
}

void spile_fn___print_user_stack_from(struct spile_context *c, spile_long pc, spile_long sp,
				      spile_long fp, spile_long flags)
{
	const struct spile_user_frame *frames;
	unsigned int count;

	spile_debit(c, USER_WALK_STEPS);
	count = spile_stack_user_from(c, pc, sp, fp, &frames);
	print_frames(c, flags, frames, count);
}

/* Reads a number in that base; false if there is none. */
static bool take_digits(struct spile_string *rest, unsigned int base, u64 *value)
{
	unsigned int i;

	*value = 0;
	for (i = 0; i < rest->length; i++) {
		int digit = hex_to_bin(rest->text[i]);

		if (digit < 0 || digit >= base)
			break;
		*value = *value * base + digit;
	}
	*rest = (struct spile_string){ rest->text + i, rest->length - i };
	return i;
}

static bool take_byte(struct spile_string *rest, char byte)
{
	if (!rest->length || *rest->text != byte)
		return false;
	*rest = (struct spile_string){ rest->text + 1, rest->length - 1 };
	return true;
}

/* "OFFSET", with a 0 before it where a signal has come; false if there is none. */
static bool take_offset(struct spile_string *rest, u64 *offset)
{
	bool interrupted = rest->length > 1 && rest->text[0] == '0' &&
			   hex_to_bin(rest->text[1]) >= 0;

	if (!take_digits(rest, 16, offset))
		return false;
	*offset &= (1ull << SPILE_PLACE_SHIFT) - 1;
	if (interrupted)
		*offset |= SPILE_PLACE_INTERRUPTED;
	return true;
}

/*
 * The next frame of a string; false at its end, or at text that is not a frame. An address
 * without a place is one of the current task.
 */
static bool next_frame(struct spile_context *c, struct spile_string *rest,
		       struct spile_user_frame *frame)
{
	u64 file, offset;

	while (take_byte(rest, ' '))
		;
	if (rest->length > 2 && rest->text[0] == '0' && (rest->text[1] | 0x20) == 'x')
		*rest = (struct spile_string){ rest->text + 2, rest->length - 2 };
	if (!take_digits(rest, 16, &frame->address))
		return false;
	if (take_byte(rest, PLACE_MARK) && take_digits(rest, 10, &file) &&
	    take_byte(rest, OFFSET_MARK) && take_offset(rest, &offset)) {
		frame->place = file << SPILE_PLACE_SHIFT | offset;
		return true;
	}
	spile_debit(c, USER_PLACE_STEPS);
	frame->place = spile_user_place(c, frame->address);
	return true;
}

void spile_fn___print_user_addresses(struct spile_context *c, struct spile_string addresses)
{
	struct spile_user_frame *frames = spile_cpu_of(c)->user_stack;
	unsigned int count = 0;

	/* Discard the result of an earlier walk. */
	spile_cpu_of(c)->stack_kind = SPILE_STACK_NONE;
	while (count < spile_script.stack_frames && next_frame(c, &addresses, &frames[count]))
		count++;
	print_frames(c, SPILE_STACK_FULL, frames, count);
}

static struct spile_text user_buffer(struct spile_context *c)
{
	return spile_text_in(spile_cpu_of(c)->stack_text, SPILE_STACK_TEXT);
}

static void put_user_line(struct spile_text *text, u64 address)
{
	char hex[24];

	spile_put_hex(hex, address);
	spile_text_bytes(text, hex, spile_hex_bytes(address));
	spile_text_byte(text, '\n');
}

static unsigned int give_user_buffer(struct spile_context *c, struct spile_text *text, char *out)
{
	unsigned int length = spile_text_end(text);

	return spile_string_copy(out, (struct spile_string){
					      spile_cpu_of(c)->stack_text,
					      min(length, spile_script.string_bytes - 1) });
}

unsigned int spile_fn___sprint_user_stack(struct spile_context *c, char *out)
{
	struct spile_text text = user_buffer(c);
	const struct spile_user_frame *frames;
	unsigned int count = user_frames(c, &frames), i;

	for (i = 0; i < count; i++)
		put_user_line(&text, frames[i].address);
	return give_user_buffer(c, &text, out);
}

unsigned int spile_fn___sprint_user_addresses(struct spile_context *c,
					      struct spile_string addresses, char *out)
{
	struct spile_text text = user_buffer(c);
	struct spile_user_frame frame;
	unsigned int count = 0;

	while (count++ < spile_script.stack_frames && next_frame(c, &addresses, &frame))
		put_user_line(&text, frame.address);
	return give_user_buffer(c, &text, out);
}

unsigned int spile_fn_fold_ustack(struct spile_context *c, struct spile_string addresses,
				  char *out)
{
	struct spile_user_frame *frames = spile_cpu_of(c)->user_stack;
	struct spile_text text = spile_text_in(out, spile_script.string_bytes);
	unsigned int count = 0;
	char hex[24];

	spile_cpu_of(c)->stack_kind = SPILE_STACK_NONE;
	while (count < spile_script.stack_frames && next_frame(c, &addresses, &frames[count]))
		count++;
	while (count--) {
		spile_put_hex(hex, frames[count].address);
		spile_text_bytes(&text, hex, spile_hex_bytes(frames[count].address));
		if (count)
			spile_text_byte(&text, ';');
	}
	return spile_text_end(&text);
}

/* If they are printed, the loader names them (spile_put_user_frame()). As values: */
static unsigned int return_hex(spile_long address, char *out)
{
	return scnprintf(out, spile_script.string_bytes, "0x%llx", address);
}

unsigned int spile_fn_usymname(struct spile_context *c, spile_long address, char *out)
{
	return return_hex(address, out);
}

unsigned int spile_fn_usymdata(struct spile_context *c, spile_long address, char *out)
{
	return return_hex(address, out);
}

unsigned int spile_fn_usymfile(struct spile_context *c, spile_long address, char *out)
{
	return return_hex(address, out);
}

unsigned int spile_fn_usymline(struct spile_context *c, spile_long address, char *out)
{
	return return_hex(address, out);
}

unsigned int spile_fn_usymfileline(struct spile_context *c, spile_long address, char *out)
{
	return return_hex(address, out);
}

/* The file that is mapped at the address of the current task; NULL: none. */
static struct spile_user_file *file_at(struct spile_context *c, spile_long address,
				       struct spile_mapping *mapping)
{
	spile_debit(c, USER_PLACE_STEPS);
	if (!spile_mapping_find(address, mapping))
		return NULL;
	return spile_user_file(spile_cpu_of(c), mapping, address);
}

unsigned int spile_fn_umodname(struct spile_context *c, spile_long address, char *out)
{
	struct spile_mapping mapping;
	const struct spile_user_file *file = file_at(c, address, &mapping);
	const char *name;

	if (file && mapping.kind != SPILE_MAPPING_FILE)
		return scnprintf(out, spile_script.string_bytes, "[vdso]");
	name = file ? strrchr(file->path, '/') : NULL;
	if (!name) {
		spile_fail_text(c, "no file is mapped at 0x%llx", address);
		out[0] = 0;
		return 0;
	}
	return scnprintf(out, spile_script.string_bytes, "%s", name + 1);
}

unsigned int spile_fn_umodbuildid(struct spile_context *c, spile_long address, char *out)
{
	const struct spile_unwind_table *table = NULL;
	struct spile_mapping mapping;
	struct spile_user_file *file = file_at(c, address, &mapping);

	if (file)
		table = spile_user_file_table(spile_cpu_of(c), file, address);
	if (!table)
		return scnprintf(out, spile_script.string_bytes, "%s", "");
	return scnprintf(out, spile_script.string_bytes, "%*phN", table->build_id_bytes,
			 table->build_id);
}

spile_long spile_fn_umodaddr(struct spile_context *c, spile_long address)
{
	struct spile_mapping mapping;

	if (!file_at(c, address, &mapping)) {
		spile_fail_text(c, "no file is mapped at 0x%llx", address);
		return 0;
	}
	return mapping.start - mapping.offset;
}
