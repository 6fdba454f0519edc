/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The interface for a script's own C (%{ ... %}). Included first by embedded.c, which is
 * compiled with kernel headers, separately from the script's C.
 *
 * The generated code puts the text of each function into one of its own,
 *
 *   void SYMBOL(struct spile_context *CONTEXT, ARGUMENTS, RESULT)
 *
 * and defines STAP_ARG_x, STAP_RETVALUE (a long, or an array of MAXSTRINGLEN chars) and
 * STAP_RETURN(v) around it. `return` ends the function, as in SystemTap; so do the macros here
 * that fail.
 */
#ifndef SPILE_EMBEDDED_H
#define SPILE_EMBEDDED_H

#ifndef SPILE_OWN_HEADERS	/* the reference module: it is compiled twice before the first script */
#include <linux/atomic.h>
#include <linux/binfmts.h>
#include <linux/compat.h>
#include <linux/cpu.h>
#include <linux/cred.h>
#include <linux/ctype.h>
#include <linux/dcache.h>
#include <linux/delay.h>
#include <linux/errno.h>
#include <linux/fs.h>
#include <linux/gfp.h>
#include <linux/hardirq.h>
#include <linux/hash.h>
#include <linux/highmem.h>
#include <linux/hrtimer.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/init.h>
#include <linux/interrupt.h>
#include <linux/jiffies.h>
#include <linux/kallsyms.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/kref.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/net.h>
#include <linux/pagemap.h>
#include <linux/perf_event.h>
#include <linux/pid_namespace.h>
#include <linux/proc_fs.h>
#include <linux/profile.h>
#include <linux/ptrace.h>
#include <linux/random.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/sched/task_stack.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/time.h>
#include <linux/timer.h>
#include <linux/tracepoint.h>
#include <linux/types.h>
#include <linux/uaccess.h>
#include <linux/uidgid.h>
#include <linux/uprobes.h>
#include <linux/user_namespace.h>
#include <linux/utsname.h>
#include <linux/version.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>
#include <asm/processor.h>
#include <asm/syscall.h>
#endif

#include "script.h"

#ifndef MAXSTRINGLEN	/* the generated file defines it before, as spile_script.string_bytes */
#define MAXSTRINGLEN 512
#endif
typedef char string_t[MAXSTRINGLEN];

#define CONTEXT_REGS(context) \
	(SPILE_REGS_ARE_WORDS((context)->probe->kind) ? NULL : (struct pt_regs *)(context)->regs)

/* embedded.c */
__printf(2, 3) void spile_embedded_error(struct spile_context *c, const char *format, ...);
__printf(2, 3) void spile_embedded_print(struct spile_context *c, const char *format, ...);
bool spile_embedded_read(struct spile_context *c, void *to, const volatile void *from, size_t bytes,
			 bool user);
void spile_embedded_write(struct spile_context *c, volatile void *to, const void *from,
			  size_t bytes, bool user);
/* Outside of a handler's run they do nothing. */
__printf(1, 2) void spile_embedded_say(const char *format, ...);
__printf(1, 2) void spile_embedded_warn(const char *format, ...);
void spile_embedded_registers(struct spile_context *c);
bool spile_embedded_copy(struct spile_context *c, void *to, const volatile void *from, size_t bytes,
			 bool user);

/* Ends the function with a run-time error (which try/catch can take). */
#define STAP_ERROR(...) \
	do { spile_embedded_error(CONTEXT, __VA_ARGS__); return; } while (0)
/* A string global as the script's unit defines it; text to string values. */
struct spile_embedded_text {
	unsigned int length;
	char text[MAXSTRINGLEN];
};
static inline void __maybe_unused spile_embedded_set(struct spile_embedded_text *to,
						     const char *text)
{
	strscpy(to->text, text, MAXSTRINGLEN);
	to->length = strlen(to->text);
}
static inline struct spile_string __maybe_unused spile_embedded_string(const char *text)
{
	return (struct spile_string){ text, strnlen(text, MAXSTRINGLEN - 1) };
}

/* Ends the function; the call continues with the next overload. */
#define STAP_NEXT \
	do { CONTEXT->next = 1; return; } while (0)
/* Prints to the script's output; at most MAXSTRINGLEN - 1 bytes at once. */
#define STAP_PRINTF(...) spile_embedded_print(CONTEXT, __VA_ARGS__)

/* The same by SystemTap's names for it, for functions that have no CONTEXT. */
#define _stp_printf(...) spile_embedded_say(__VA_ARGS__)
#define _stp_print(text) spile_embedded_say("%s", (const char *)(text))
#define _stp_print_char(character) spile_embedded_say("%c", (int)(character))
#define _stp_print_flush() do { } while (0)	/* the loader reads what there is */
/* Both go on, and are told to the user at once; STAP_ERROR() ends the function. */
#define _stp_warn(...) spile_embedded_warn(__VA_ARGS__)
#define _stp_error(format, ...) spile_embedded_warn("error: " format, ##__VA_ARGS__)
#define _stp_dbug(...) do { } while (0)
#define _stp_snprintf scnprintf
#define _stp_vsnprintf vscnprintf

/*
 * Nanoseconds since the epoch. SystemTap requires STAP_NEED_GETTIMEOFDAY for it;
 * here it is always there.
 */
#define _stp_gettimeofday_ns() ((int64_t)ktime_get_real_fast_ns())

/*
 * Fault-safe reads and writes through typed pointers. A fault is a run-time
 * error and ends the function. User pointers: of the current task, not paged in.
 */
#define SPILE_EMBEDDED_GET(pointer, user)                                                       \
	({                                                                                      \
		__unqual_scalar_typeof(*(pointer)) spile_value;                                 \
		if (!spile_embedded_read(CONTEXT, (void *)&spile_value,                         \
					 (const volatile void *)(pointer), sizeof(spile_value), \
					 user))                                                 \
			return;                                                                 \
		spile_value;                                                                    \
	})
#define SPILE_EMBEDDED_PUT(pointer, value, user)                                        \
	({                                                                              \
		typeof(*(pointer)) spile_value = (value);                               \
		spile_embedded_write(CONTEXT, (volatile void *)(pointer), &spile_value, \
				     sizeof(spile_value), user);                        \
		if (CONTEXT->error)                                                     \
			return;                                                         \
	})
#define kread(pointer) SPILE_EMBEDDED_GET(pointer, false)
#define uread(pointer) SPILE_EMBEDDED_GET(pointer, true)
#define kwrite(pointer, value) SPILE_EMBEDDED_PUT(pointer, value, false)
#define uwrite(pointer, value) SPILE_EMBEDDED_PUT(pointer, value, true)

/* The same by size (1, 2, 4, 8) and address. */
#define kderef(size, address) ({ \
	spile_ulong spile_value = spile_read(CONTEXT, (unsigned long)(address), size); \
	if (CONTEXT->error) \
		return; \
	(spile_long)spile_value; \
})
#define uderef(size, address) ({ \
	spile_ulong spile_value = spile_read_user(CONTEXT, (unsigned long)(address), size); \
	if (CONTEXT->error) \
		return; \
	(spile_long)spile_value; \
})
#define store_kderef(size, address, value) ({ \
	spile_write(CONTEXT, (unsigned long)(address), size, (spile_ulong)(value)); \
	if (CONTEXT->error) \
		return; \
})
#define deref kderef
#define store_deref store_kderef

/*
 * Copies bytes of kernel or user memory; to NULL only looks whether they can be
 * read. A fault is a run-time error and ends the function.
 */
#define kderef_buffer(to, from, bytes) ({ \
	char *spile_to = (char *)(to); \
	if (!spile_embedded_copy(CONTEXT, spile_to, (const volatile void *)(from), bytes, false)) \
		return; \
	spile_to; \
})
#define uderef_buffer(to, from, bytes) ({ \
	char *spile_to = (char *)(to); \
	if (!spile_embedded_copy(CONTEXT, spile_to, (const volatile void *)(from), bytes, true)) \
		return; \
	spile_to; \
})
#define store_uderef(size, address, value)                                               \
	({                                                                               \
		u64 spile_value = (u64)(value);                                          \
		spile_embedded_write(CONTEXT, (volatile void *)(unsigned long)(address), \
				     &spile_value, size, true);                          \
		if (CONTEXT->error)                                                      \
			return;                                                          \
	})

/*
 * Copies text up to its end, with a terminating 0, into an array of this many bytes; to
 * NULL only looks whether it can be read. A fault is a run-time error and ends the
 * function.
 */
#define SPILE_EMBEDDED_TEXT(to, from, bytes, user) ({ \
	char *spile_to = (char *)(to); \
	const char *spile_from = (const char *)(unsigned long)(from); \
	size_t spile_left = (bytes); \
	char spile_byte; \
	for (; spile_left > 1; spile_left--) { \
		if (!spile_embedded_copy(CONTEXT, &spile_byte, spile_from++, 1, user)) \
			return; \
		if (!spile_byte) \
			break; \
		if (spile_to) \
			*spile_to++ = spile_byte; \
	} \
	if (spile_to && spile_left) \
		*spile_to = 0; \
})
#define kderef_string(to, from, bytes) SPILE_EMBEDDED_TEXT(to, from, bytes, false)
#define uderef_string(to, from, bytes) SPILE_EMBEDDED_TEXT(to, from, bytes, true)
#define deref_string kderef_string
#define deref_buffer kderef_buffer

/*
 * Older embedded C has this label for faults; here kread() and the like end the function
 * themselves.
 */
#define CATCH_DEREF_FAULT() do { } while (0)

#ifndef strlcpy	/* gone from the kernel: "string: Remove strlcpy()", 6.8 */
#define strlcpy(to, from, bytes) ({ \
	const char *spile_from = (from); \
	strscpy(to, spile_from, bytes); \
	strlen(spile_from); \
})
#endif

#endif
