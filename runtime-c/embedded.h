/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a script's own C (%{ ... %}) sees. Included first by NAME_embedded.c,
 * which is compiled with kernel headers and stands apart from the script's C.
 *
 * The generated code puts each function's text into
 *
 *	RESULT spile_embedded_NAME(struct spile_context *c, ARGUMENTS)
 *	{ ... #define STAP_ARG_x and STAP_RETVALUE ... { TEXT } out: ... }
 *
 * with a label `out`, to which `return` of the text goes too. STAP_RETVALUE is a
 * spile_long or an array of MAXSTRINGLEN chars.
 */
#ifndef SPILE_EMBEDDED_H
#define SPILE_EMBEDDED_H

#include <linux/atomic.h>
#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/errno.h>
#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/types.h>
#include <linux/uaccess.h>
#include <linux/version.h>

#include "script.h"

#ifndef MAXSTRINGLEN	/* the generated file defines it before, as spile_script.string_bytes */
#define MAXSTRINGLEN 512
#endif
typedef char string_t[MAXSTRINGLEN];

#define CONTEXT c
#define CONTEXT_REGS(context) ((struct pt_regs *)(context)->regs)

/* embedded.c */
__printf(2, 3) void spile_embedded_error(struct spile_context *c, const char *format, ...);
__printf(2, 3) void spile_embedded_print(struct spile_context *c, const char *format, ...);
void spile_embedded_return_long(unsigned long place, unsigned long value);
void spile_embedded_return_string(unsigned long place, unsigned long value);
bool spile_embedded_read(struct spile_context *c, void *to, const volatile void *from, size_t bytes, bool user);
void spile_embedded_write(struct spile_context *c, volatile void *to, const void *from, size_t bytes, bool user);

/* Ends the function with a run-time error (which try/catch can take). */
#define STAP_ERROR(...) \
	do { spile_embedded_error(CONTEXT, __VA_ARGS__); goto out; } while (0)
/* Prints to the script's output; at most MAXSTRINGLEN - 1 bytes at once. */
#define STAP_PRINTF(...) spile_embedded_print(CONTEXT, __VA_ARGS__)

/* Sets the value, number or string as the function has it, and ends the function. */
#define STAP_RETURN(v) \
	do { \
		_Generic((STAP_RETVALUE), \
			 char *: spile_embedded_return_string, \
			 default: spile_embedded_return_long) \
			(_Generic((STAP_RETVALUE), \
				  char *: (unsigned long)(STAP_RETVALUE), \
				  default: (unsigned long)&(STAP_RETVALUE)), \
			 (unsigned long)(v)); \
		goto out; \
	} while (0)

/*
 * Fault-safe reads and writes through typed pointers. A fault is a run-time
 * error and ends the function. User pointers: of the current task, not paged in.
 */
#define SPILE_EMBEDDED_GET(pointer, user) ({ \
	typeof(*(pointer)) spile_value; \
	if (!spile_embedded_read(CONTEXT, &spile_value, (const volatile void *)(pointer), sizeof(spile_value), user)) \
		goto out; \
	spile_value; \
})
#define SPILE_EMBEDDED_PUT(pointer, value, user) ({ \
	typeof(*(pointer)) spile_value = (value); \
	spile_embedded_write(CONTEXT, (volatile void *)(pointer), &spile_value, sizeof(spile_value), user); \
	if (CONTEXT->error) \
		goto out; \
})
#define kread(pointer) SPILE_EMBEDDED_GET(pointer, false)
#define uread(pointer) SPILE_EMBEDDED_GET(pointer, true)
#define kwrite(pointer, value) SPILE_EMBEDDED_PUT(pointer, value, false)
#define uwrite(pointer, value) SPILE_EMBEDDED_PUT(pointer, value, true)

/* The same by size (1, 2, 4, 8) and address. */
#define kderef(size, address) ({ \
	spile_ulong spile_value = spile_read(CONTEXT, (unsigned long)(address), size); \
	if (CONTEXT->error) \
		goto out; \
	(spile_long)spile_value; \
})
#define uderef(size, address) ({ \
	spile_ulong spile_value = spile_read_user(CONTEXT, (unsigned long)(address), size); \
	if (CONTEXT->error) \
		goto out; \
	(spile_long)spile_value; \
})
#define store_kderef(size, address, value) ({ \
	spile_write(CONTEXT, (unsigned long)(address), size, (spile_ulong)(value)); \
	if (CONTEXT->error) \
		goto out; \
})
#define deref kderef
#define store_deref store_kderef

/* Where faults went before kread() and its like ended the function themselves. */
#define CATCH_DEREF_FAULT() do { } while (0)

#ifndef strlcpy	/* gone from the kernel: d26270061ae6 ("string: Remove strlcpy()"), 6.8 */
#define strlcpy(to, from, bytes) ({ \
	const char *spile_from = (from); \
	strscpy(to, spile_from, bytes); \
	strlen(spile_from); \
})
#endif

#endif
