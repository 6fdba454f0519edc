// SPDX-License-Identifier: GPL-2.0-or-later
/* Builtins that print messages, and those that end a handler, the session or more. */
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/kern_levels.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/time64.h>

#include "script.h"
#include "builtins.h"
#include "context.h"
#include "features.h"
#include "gate.h"
#include "guard.h"
#include "ring.h"
#include "session.h"

void spile_fn_log(struct spile_context *c, struct spile_string text)
{
	/* One part for text and newline: their length, then the bytes. */
	char *at = spile_record_begin(c, SPILE_RECORD_PRINT, SPILE_FORMAT_TEXT,
				      SPILE_STRING_PART(text.length + 1));
	char *end;

	if (!at)
		return;
	end = spile_put_string(at, text);
	if (SPILE_STRING_PART(text.length) != SPILE_STRING_PART(text.length + 1)) {
		*(u64 *)end = 0;
		end += 8;
	}
	*(u32 *)at = text.length + 1;
	at[4 + text.length] = '\n';
	spile_record_commit(c, end);
}

void spile_fn_warn(struct spile_context *c, struct spile_string text)
{
	spile_ring_text(spile_cpu_of(c), SPILE_RECORD_WARN, 0, text.text, text.length);
}

void spile_fn_error(struct spile_context *c, struct spile_string text)
{
	spile_fail_text(c, "%.*s", (int)text.length, text.text);
}

void spile_fn_exit(struct spile_context *c)
{
	spile_exit(c);
}

void spile_fn_abort(struct spile_context *c)
{
	spile_exit(c);
	spile_fail(c, SPILE_E_ABORT, 0);
}

void spile_fn_printk(struct spile_context *c, spile_long level, struct spile_string text)
{
	const char header[] = { KERN_SOH_ASCII, '0' + (level & 7), 0 };

	/*
	 * Unprintable characters are escaped, so that a process name cannot end the line or
	 * set a log level.
	 */
	if (text.length > 0 && text.text[text.length - 1] == '\n')
		text.length--;
	if (text.length > 0)
		printk("%s%*pE\n", header, (int)text.length, text.text);
	else
		printk("%s\n", header);
}

void spile_fn_system(struct spile_context *c, struct spile_string command)
{
	spile_ring_text(spile_cpu_of(c), SPILE_RECORD_SYSTEM, 0, command.text, command.length);
}

void spile_fn_dump_stack(struct spile_context *c)
{
	dump_stack();
}

/*
 * Not trace_puts(): its section in a module makes the kernel print a warning about trace_printk().
 * Any context, NMI too.
 */
void spile_fn_ftrace(struct spile_context *c, struct spile_string text)
{
	/* The kernel ends the line. */
	spile_trace_puts(_THIS_IP_, text.text, text.length);
}

void spile_fn_panic(struct spile_context *c, struct spile_string text)
{
	if (spile_gate_passes(c, SPILE_GATE_PANIC, task_tgid_nr(current), 0, 1))
		panic("%.*s", (int)text.length, text.text);
}

/* In pieces: udelay() overflows for long delays. */
static void delay(struct spile_context *c, spile_long microseconds)
{
	if (microseconds < 0 || microseconds > USEC_PER_SEC) {
		spile_fail_text(c, "a delay of %lld us is out of range (0, 1000000)", microseconds);
		return;
	}
	for (; microseconds > 1000; microseconds -= 1000)
		udelay(1000);
	udelay(microseconds);
}

void spile_fn_mdelay(struct spile_context *c, spile_long milliseconds)
{
	delay(c, milliseconds > 1000 ? USEC_PER_SEC + 1 : milliseconds * 1000);
}

void spile_fn_udelay(struct spile_context *c, spile_long microseconds)
{
	delay(c, microseconds);
}
