// SPDX-License-Identifier: GPL-2.0-or-later
/* Functions that embedded C calls (embedded.h). */
#include <linux/kernel.h>
#include <linux/uaccess.h>

#include "embedded.h"
#include "context.h"
#include "gate.h"
#include "guard.h"
#include "memory.h"
#include "ring.h"

void spile_embedded_error(struct spile_context *c, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	spile_fail_text_of(c, format, arguments);
	va_end(arguments);
}

void spile_embedded_print(struct spile_context *c, const char *format, ...)
{
	struct spile_cpu *cpu = spile_cpu_of(c);
	va_list arguments;

	if (c->error)
		return;
	va_start(arguments, format);
	spile_ring_format_of(cpu, SPILE_RECORD_PRINT, SPILE_FORMAT_TEXT, format, arguments);
	va_end(arguments);
}

/* Writes a record of the run on this CPU; outside of a run it does nothing. */
static void write_record(int type, u32 id, const char *format, va_list arguments)
{
	struct spile_cpu *cpu = spile_this_cpu();

	if (READ_ONCE(cpu->context.busy) && !cpu->context.error)
		spile_ring_format_of(cpu, type, id, format, arguments);
}

void spile_embedded_say(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	write_record(SPILE_RECORD_PRINT, SPILE_FORMAT_TEXT, format, arguments);
	va_end(arguments);
}

void spile_embedded_warn(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	write_record(SPILE_RECORD_WARN, 0, format, arguments);
	va_end(arguments);
}

/*
 * Sets what embedded C reads of the context by SystemTap's names: registers, which of them
 * were hit, and the probe point.
 */
void spile_embedded_registers(struct spile_context *c)
{
	struct pt_regs *regs = spile_registers(c);
	bool user = regs && user_mode(regs);

	c->user_mode_p = user;
	c->kregs = user ? NULL : regs;
	c->uregs = user ? regs : current->mm ? task_pt_regs(current) : NULL;
	c->probe_point = c->probe->point;
}

/* If `to` is NULL the bytes are only read, a page and a half at most, in pieces. */
bool spile_embedded_copy(struct spile_context *c, void *to, const volatile void *from, size_t bytes,
			 bool user)
{
	enum { PIECE = 128, PIECES = 48 };
	char piece[PIECE];
	size_t done;

	if (to)
		return spile_embedded_read(c, to, from, bytes, user);
	for (done = 0; done < min_t(size_t, bytes, PIECE * PIECES); done += PIECE)
		if (!spile_embedded_read(c, piece, from + done, min_t(size_t, PIECE, bytes - done),
					 user))
			return false;
	return true;
}

bool spile_embedded_read(struct spile_context *c, void *to, const volatile void *from, size_t bytes,
			 bool user)
{
	if (!spile_memory_read(to, (unsigned long)from, bytes, user))
		return true;
	spile_fail(c, SPILE_E_READ_FAULT, (unsigned long)from);
	return false;
}

void spile_embedded_write(struct spile_context *c, volatile void *to, const void *from,
			  size_t bytes, bool user)
{
	if (user ? spile_gate_write_user(c, (unsigned long)to, from, bytes) :
		   spile_gate_write(c, (unsigned long)to, from, bytes))
		spile_fail(c, SPILE_E_WRITE_FAULT, (unsigned long)to);
}
