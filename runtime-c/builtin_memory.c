// SPDX-License-Identifier: GPL-2.0-or-later
/* Builtins that read kernel and user memory, and those of guru mode that write it. */
#include <linux/bitmap.h>
#include <linux/gfp.h>
#include <linux/kernel.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/string.h>

#include "script.h"
#include "builtins.h"
#include "context.h"
#include "gate.h"
#include "guard.h"
#include "memory.h"
#include "ring.h"
#include "syscall_compat.h"
#include "text.h"

spile_long spile_fn___kernel_readable(struct spile_context *c, spile_long address, spile_long bytes)
{
	char value[8];

	return bytes <= (spile_long)sizeof(value) &&
	       !spile_memory_read(value, address, bytes, false);
}

/* Strings. `most`, `in`: bytes read; `out_bytes`: bytes written, NUL included. */

/* Reads into out up to `most` bytes; -EFAULT leaves out empty. */
static int read_string(struct spile_context *c, char *out, spile_long address, spile_long most,
		       bool user)
{
	int length;

	if (most < 0)
		most = 0;
	most = min_t(spile_long, most, spile_script.string_bytes - 1);
	length = spile_memory_string(out, most, address, user);
	if (length < 0 && user)
		spile_restart(c);
	out[max(length, 0)] = 0;
	return length;
}

static unsigned int string_or_error(struct spile_context *c, spile_long address, spile_long most,
				    bool user, char *out)
{
	int length = read_string(c, out, address, most, user);

	if (length >= 0)
		return length;
	if (user)
		spile_fail_text(c, "user string copy fault %d at 0x%llx [man error::fault]", length,
				address);
	else
		spile_fail_text(c, "kernel string copy fault at 0x%llx [man error::fault]",
				address);
	return 0;
}

static unsigned int string_or_default(struct spile_context *c, spile_long address, spile_long most,
				      bool user, struct spile_string fallback, char *out)
{
	int length = read_string(c, out, address, most, user);

	return length >= 0 ? length : spile_string_copy(out, fallback);
}

/* The buffer of error messages is used as scratch: no error is set meanwhile. */
static unsigned int string_quoted(struct spile_context *c, spile_long address, spile_long in,
				  spile_long out_bytes, bool user, char *out)
{
	char *text = spile_cpu_of(c)->message;
	int length;

	length = spile_memory_string(
		text, clamp_t(spile_long, in, 0, spile_script.string_bytes - 1), address, user);
	if (length < 0) {
		if (user)
			spile_restart(c);
		return scnprintf(out, spile_script.string_bytes, "0x%llx", address);
	}
	/* The shortest truncated quoted string: "...  */
	out_bytes = clamp_t(spile_long, out_bytes, 8, spile_script.string_bytes);
	return spile_text_quote(out, out_bytes, text, length);
}

/* The kernel's own names: the bits differ between releases. */
unsigned int spile_fn___gfp_flag_str(struct spile_context *c, spile_long flags, char *out)
{
	gfp_t gfp = (__force gfp_t)flags;

	return scnprintf(out, spile_script.string_bytes, "%pGg", &gfp);
}

/* Exactly that many bytes, NULs included. */
static unsigned int buffer_quoted(struct spile_context *c, spile_long address, spile_long in,
				  spile_long out_bytes, bool user, bool fails, char *out)
{
	char *bytes = spile_cpu_of(c)->message;

	out[0] = 0;
	/* The shortest truncated text, and a NUL. */
	out_bytes = clamp_t(spile_long, out_bytes, 8, spile_script.string_bytes - 1);
	/*
	 * Bytes beyond the result are not read. A negative length is a large unsigned
	 * one.
	 */
	in = in < 0 ? out_bytes : min(in, out_bytes);
	if (spile_memory_read(bytes, address, in, user)) {
		if (user)
			spile_restart(c);
		if (!fails)
			return scnprintf(out, spile_script.string_bytes, "0x%llx", address);
		spile_fail_text(c, "%s buffer copy fault at 0x%llx [man error::fault]",
				user ? "user" : "kernel", address);
		return 0;
	}
	return spile_text_quote(out, out_bytes + 1, bytes, in);
}

unsigned int spile_fn_kernel_string(struct spile_context *c, spile_long address, char *out)
{
	return string_or_error(c, address, spile_script.string_bytes, false, out);
}

unsigned int spile_fn_kernel_string2(struct spile_context *c, spile_long address,
				     struct spile_string fallback, char *out)
{
	return string_or_default(c, address, spile_script.string_bytes, false, fallback, out);
}

unsigned int spile_fn_kernel_string_n(struct spile_context *c, spile_long address, spile_long most,
				      char *out)
{
	return string_or_error(c, address, most, false, out);
}

unsigned int spile_fn_kernel_string_quoted(struct spile_context *c, spile_long address, char *out)
{
	return string_quoted(c, address, spile_script.string_bytes, spile_script.string_bytes,
			     false, out);
}

unsigned int spile_fn_kernel_or_user_string_quoted(struct spile_context *c, spile_long address,
						   char *out)
{
	char probe;

	return string_quoted(c, address, spile_script.string_bytes, spile_script.string_bytes,
			     spile_memory_read(&probe, address, 1, false) != 0, out);
}

unsigned int spile_fn_kernel_buffer_quoted(struct spile_context *c, spile_long address,
					   spile_long in, spile_long out_bytes, char *out)
{
	return buffer_quoted(c, address, in, out_bytes, false, false, out);
}

unsigned int spile_fn_kernel_buffer_quoted_error(struct spile_context *c, spile_long address,
						 spile_long in, spile_long out_bytes, char *out)
{
	return buffer_quoted(c, address, in, out_bytes, false, true, out);
}

unsigned int spile_fn_user_buffer_quoted(struct spile_context *c, spile_long address, spile_long in,
					 spile_long out_bytes, char *out)
{
	return buffer_quoted(c, address, in, out_bytes, true, false, out);
}

unsigned int spile_fn_user_buffer_quoted_error(struct spile_context *c, spile_long address,
					       spile_long in, spile_long out_bytes, char *out)
{
	return buffer_quoted(c, address, in, out_bytes, true, true, out);
}

unsigned int spile_fn_user_string(struct spile_context *c, spile_long address, char *out)
{
	return string_or_error(c, address, spile_script.string_bytes, true, out);
}

unsigned int spile_fn_user_string2(struct spile_context *c, spile_long address,
				   struct spile_string fallback, char *out)
{
	return string_or_default(c, address, spile_script.string_bytes, true, fallback, out);
}

unsigned int spile_fn_user_string_n(struct spile_context *c, spile_long address, spile_long most,
				    char *out)
{
	return string_or_error(c, address, most, true, out);
}

unsigned int spile_fn_user_string_n2(struct spile_context *c, spile_long address, spile_long most,
				     struct spile_string fallback, char *out)
{
	return string_or_default(c, address, most, true, fallback, out);
}

static void warn_of_fault(struct spile_context *c, const char *what, spile_long address)
{
	if (c->error == SPILE_E_RESTART)
		return;
	spile_ring_format(spile_cpu_of(c), SPILE_RECORD_WARN, 0,
			  "user %s copy fault -14 at 0x%llx [man error::fault]", what, address);
}

unsigned int spile_fn_user_string_n_warn2(struct spile_context *c, spile_long address,
					  spile_long most, struct spile_string fallback, char *out)
{
	int length = read_string(c, out, address, most, true);

	if (length >= 0)
		return length;
	warn_of_fault(c, "string", address);
	return spile_string_copy(out, fallback);
}

unsigned int spile_fn_user_string_quoted(struct spile_context *c, spile_long address, char *out)
{
	return string_quoted(c, address, spile_script.string_bytes, spile_script.string_bytes, true,
			     out);
}

unsigned int spile_fn_user_string_n_quoted2(struct spile_context *c, spile_long address,
					    spile_long in, spile_long out_bytes, char *out)
{
	return string_quoted(c, address, in, out_bytes, true, out);
}

/* Numbers. Types are those of C on this machine: all are signed, char included, except pointers. */

static spile_ulong read_number(struct spile_context *c, spile_long address, unsigned int size,
			       bool user, const char *type)
{
	spile_ulong value = 0;

	if (!spile_memory_read(&value, address, size, user))
		return value;
	if (user)
		spile_restart(c);
	spile_fail_text(c, "%s %s copy fault at 0x%llx [man error::fault]",
			user ? "user" : "kernel", type, address);
	return value;
}

spile_long spile_fn_kernel_char(struct spile_context *c, spile_long address)
{
	return (s8)read_number(c, address, 1, false, "char");
}

spile_long spile_fn_kernel_short(struct spile_context *c, spile_long address)
{
	return (s16)read_number(c, address, 2, false, "short");
}

spile_long spile_fn_kernel_int(struct spile_context *c, spile_long address)
{
	return (s32)read_number(c, address, 4, false, "int");
}

spile_long spile_fn_kernel_long(struct spile_context *c, spile_long address)
{
	return (long)read_number(c, address, sizeof(long), false, "long");
}

spile_long spile_fn_kernel_pointer(struct spile_context *c, spile_long address)
{
	return read_number(c, address, sizeof(void *), false, "pointer");
}

spile_long spile_fn_bits_set(struct spile_context *c, spile_long address, spile_long bits)
{
	enum { WORDS = 16, BITS_MAX = 1 << 20 };
	spile_long left = clamp_t(spile_long, bits, 0, BITS_MAX), set = 0;
	unsigned long words[WORDS];

	while (left > 0) {
		unsigned int some = min_t(spile_long, left, WORDS * BITS_PER_LONG);
		size_t bytes = BITS_TO_LONGS(some) * sizeof(long);

		if (spile_memory_read(words, address, bytes, false)) {
			spile_fail_text(c, "kernel long copy fault at 0x%llx [man error::fault]",
					address);
			return 0;
		}
		spile_debit(c, 1);
		set += bitmap_weight(words, some);
		address += bytes;
		left -= some;
	}
	return set;
}

static int read_user_number(struct spile_context *c, void *value, spile_long address,
			    unsigned int size)
{
	int error = spile_memory_read(value, address, size, true);

	if (error)
		spile_restart(c);
	return error;
}

/*
 * User memory has three functions for each type: on a fault they return 0, fail, or warn and
 * return 0.
 */
#define USER_NUMBER(name, type) \
	spile_long spile_fn_user_##name(struct spile_context *c, spile_long address) \
	{ \
		type value; \
		int error = read_user_number(c, &value, address, sizeof(value)); \
		return error ? 0 : (spile_long)value; \
	} \
	spile_long spile_fn_user_##name##_error(struct spile_context *c, spile_long address) \
	{ \
		return (type)read_number(c, address, sizeof(type), true, #name); \
	} \
	spile_long spile_fn_user_##name##_warn(struct spile_context *c, spile_long address) \
	{ \
		type value; \
		if (!read_user_number(c, &value, address, sizeof(value))) \
			return (spile_long)value; \
		warn_of_fault(c, #name, address); \
		return 0; \
	}
USER_NUMBER(char, s8)
USER_NUMBER(short, s16)
USER_NUMBER(ushort, u16)
USER_NUMBER(int, s32)
USER_NUMBER(uint, u32)
USER_NUMBER(uint8, u8)
USER_NUMBER(int64, s64)
#undef USER_NUMBER

/*
 * The width of a long of the current process: that of its program, and while it is in a system
 * call that of the call, which a 64-bit program may make by int 0x80.
 */
static unsigned int bytes_of_long(void)
{
	if (current->flags & PF_KTHREAD)
		return 8;
	return spile_is_compat_call() || !user_64bit_mode(task_pt_regs(current)) ? 4 : 8;
}

#define USER_LONG(name, narrow) \
	spile_long spile_fn_user_##name(struct spile_context *c, spile_long address) \
	{ \
		unsigned int bytes = bytes_of_long(); \
		spile_long value = 0; \
		if (read_user_number(c, &value, address, bytes)) \
			return 0; \
		return bytes == sizeof(narrow) ? (narrow)value : value; \
	} \
	spile_long spile_fn_user_##name##_error(struct spile_context *c, spile_long address) \
	{ \
		unsigned int bytes = bytes_of_long(); \
		spile_long value = read_number(c, address, bytes, true, #name); \
		return bytes == sizeof(narrow) ? (narrow)value : value; \
	} \
	spile_long spile_fn_user_##name##_warn(struct spile_context *c, spile_long address) \
	{ \
		unsigned int bytes = bytes_of_long(); \
		spile_long value = 0; \
		if (!read_user_number(c, &value, address, bytes)) \
			return bytes == sizeof(narrow) ? (narrow)value : value; \
		warn_of_fault(c, #name, address); \
		return 0; \
	}
USER_LONG(long, s32)
USER_LONG(ulong, u32)
#undef USER_LONG

/* Writes. */

static void write_bytes(struct spile_context *c, spile_long address, const void *from,
			unsigned int bytes, const char *type)
{
	if (bytes && spile_gate_write(c, address, from, bytes))
		spile_fail_text(c, "kernel %s copy fault at 0x%llx [man error::fault]", type,
				address);
}

/* To the current process. */
static bool write_user(struct spile_context *c, spile_long address, const void *from,
		       unsigned int bytes)
{
	return !bytes || !spile_gate_write_user(c, address, from, bytes);
}

static void write_user_bytes(struct spile_context *c, spile_long address, const void *from,
			     unsigned int bytes, const char *type)
{
	if (!write_user(c, address, from, bytes))
		spile_fail_text(c, "user %s copy fault at 0x%llx [man error::fault]", type,
				address);
}

/* The functions that write a value to one of the two address spaces. */
#define SET_NUMBER(space, name, bytes, write) \
	void spile_fn_set_##space##_##name(struct spile_context *c, spile_long address, \
					   spile_long value) \
	{ \
		write(c, address, &value, bytes, #name); \
	}

#define SET_VALUES(space, write) \
	SET_NUMBER(space, char, 1, write) \
	SET_NUMBER(space, short, 2, write) \
	SET_NUMBER(space, int, 4, write) \
	SET_NUMBER(space, long, sizeof(long), write) \
	SET_NUMBER(space, pointer, sizeof(void *), write) \
	void spile_fn_set_##space##_string(struct spile_context *c, spile_long address, \
					   struct spile_string value) \
	{ \
		write(c, address, value.text, value.length + 1, "string"); \
	} \
	void spile_fn_set_##space##_string_n(struct spile_context *c, spile_long address, \
					     spile_long most, struct spile_string value) \
	{ \
		write(c, address, value.text, bytes_at_most(value, most), "string"); \
	}

/* Bytes of the string with its NUL, or of a part of it. */
static unsigned int bytes_at_most(struct spile_string value, spile_long most)
{
	unsigned int bytes = value.length + 1;

	if (most < bytes)
		bytes = most > 0 ? most : 0;
	return bytes;
}

SET_VALUES(kernel, write_bytes)
SET_VALUES(user, write_user_bytes)
#undef SET_VALUES
#undef SET_NUMBER

void spile_fn_set_user_string_arg(struct spile_context *c, spile_long address,
				  struct spile_string value)
{
	if (!write_user(c, address, value.text, value.length + 1))
		warn_of_fault(c, "string", address);
}
