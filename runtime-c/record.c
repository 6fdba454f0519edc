// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Payloads: the data that a handler puts into a record, or into its CPU's scratch for a
 * string made in the kernel. Parts as abi.h describes them. The caller has reserved the
 * room that script.h names for each part.
 */
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/string.h>

#include "context.h"
#include "format.h"
#include "guard.h"
#include "memory.h"
#include "pretty.h"

/* Writes zeros up to a multiple of 8 from `start`, so that no data of old records is visible. */
static char *pad(char *start, char *end)
{
	char *padded = start + SPILE_PADDED((unsigned int)(end - start));

	memset(end, 0, padded - end);
	return padded;
}

/* A part that could not be read. */
static char *put_fault(char *at)
{
	*(u64 *)at = SPILE_FAULT;
	return at + 8;
}

char *spile_put_string(char *at, struct spile_string s)
{
	if (!at)
		return NULL;
	*(u32 *)at = s.length;
	memcpy(at + 4, s.text, s.length);
	return pad(at, at + 4 + s.length);
}

char *spile_put_memory(struct spile_context *c, char *at, spile_ulong address, spile_long bytes,
		       int user)
{
	if (!at)
		return NULL;
	if (bytes < 0 || bytes > PAGE_SIZE) {
		spile_fail_text(c, "%lld is too many bytes for a memory dump", bytes);
		return put_fault(at);
	}
	if (spile_memory_read(at + 4, address, bytes, user)) {
		spile_fail(c, SPILE_E_READ_FAULT, address);
		return put_fault(at);
	}
	*(u32 *)at = bytes;
	return pad(at, at + 4 + bytes);
}

static bool holds_word(u32 raw_bytes, unsigned long offset, const struct spile_pretty_item *item)
{
	return offset <= raw_bytes && raw_bytes - offset >= item->length;
}

/* Reads text of the length that the object says; a negative error. */
static int read_text(char *to, const char *raw, u32 raw_bytes, unsigned long pointer,
		     const struct spile_pretty_item *item, bool user)
{
	unsigned long length;

	if (!holds_word(raw_bytes, item->second, item))
		return -EFAULT;
	length = spile_pretty_pointer(raw + item->second, item);
	length = min_t(unsigned long, length, spile_script.string_bytes - 1);
	if (length && spile_memory_read(to, pointer, length, user))
		return -EFAULT;
	return length;
}

/* The text that a char * of the object points to. */
static char *put_pointed(char *at, const char *raw, u32 raw_bytes,
			 const struct spile_pretty_item *item, bool user)
{
	unsigned long pointer;
	int length;

	if (!holds_word(raw_bytes, item->offset, item))
		return put_fault(at);
	pointer = spile_pretty_pointer(raw + item->offset, item);
	/* The object field shows the null pointer; its part is empty. */
	if (!pointer)
		length = 0;
	else if (item->op == SPILE_PRETTY_TEXT)
		length = read_text(at + 4, raw, raw_bytes, pointer, item, user);
	else
		length = spile_memory_string(at + 4, spile_script.string_bytes - 1, pointer, user);
	if (length < 0)
		return put_fault(at);
	*(u32 *)at = length;
	return pad(at, at + 4 + length);
}

char *spile_put_pretty(struct spile_context *c, char *at, const unsigned char *description,
		       unsigned int description_bytes, spile_ulong address)
{
	struct spile_pretty_walk walk;
	struct spile_pretty_item item;
	const char *raw = at + 4;
	u32 raw_bytes;

	if (!at)
		return NULL;
	if (!spile_pretty_begin(&walk, description, description_bytes, &raw_bytes) ||
	    spile_memory_read(at + 4, address, raw_bytes, walk.user))
		return put_fault(at);
	*(u32 *)at = raw_bytes;
	at = pad(at, at + 4 + raw_bytes);
	spile_debit(c, raw_bytes / 32);
	while (spile_pretty_next(&walk, &item)) {
		char *begin = at;

		if (spile_pretty_points(&item))
			at = put_pointed(at, raw, raw_bytes, &item, walk.user);
		spile_debit(c, 2 + (at - begin) / 16);
	}
	return at;
}

static spile_long item_value(const struct spile_context *c, const struct spile_item *item)
{
	spile_ulong value = item->registers ? c->regs[item->registers - 1] : 0;

	value += item->add;
	if (item->is_signed)
		return spile_sign_extend(value, item->bits);
	return spile_bits(value, item->first, item->bits);
}

char *spile_put_items(struct spile_context *c, char *at, const struct spile_item *items,
		      unsigned int count)
{
	const struct spile_item *item;

	for (item = items; item < items + count; item++) {
		spile_long value = item_value(c, item);

		if (item->description)
			at = spile_put_pretty(c, at, item->description, item->description_bytes,
					      value);
		else
			at = spile_put_long(at, value);
	}
	return at;
}

char *spile_scratch(struct spile_context *c)
{
	return spile_cpu_of(c)->scratch;
}

unsigned int spile_format(struct spile_context *c, const unsigned char *format,
			  unsigned int format_bytes, char *end, char *out)
{
	unsigned int length;

	if (!end) {
		out[0] = 0;
		return 0;
	}
	spile_debit(c, (end - spile_cpu_of(c)->scratch) / 8);
	length = spile_format_render(format, format_bytes, spile_script.descriptions,
				     spile_script.description_count, spile_cpu_of(c)->scratch, end,
				     out, spile_script.string_bytes);
	/* A string value ends at its first NUL (%c or %b may have written one). */
	return strnlen(out, length);
}
