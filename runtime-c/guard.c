// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Run-time errors of scripts. Texts as the language's users know them; where the
 * error happened ("near operator '/' at ...") is added by the loader, which has
 * the table of locations.
 */
#include <linux/kernel.h>

#include "guard.h"
#include "ring.h"
#include "session.h"

void spile_fail(struct spile_context *c, enum spile_error error, spile_ulong detail)
{
	if (c->error)
		return;
	c->error = error;
	spile_cpu_of(c)->detail = detail;
}

void spile_fail_text(struct spile_context *c, const char *format, ...)
{
	va_list arguments;

	if (c->error)
		return;
	va_start(arguments, format);
	vsnprintf(spile_cpu_of(c)->message, spile_message_bytes(), format, arguments);
	va_end(arguments);
	c->error = SPILE_E_MESSAGE;
}

/* Writes the message of the error that is set; returns its length. */
static unsigned int error_text(struct spile_cpu *cpu, char *out, unsigned int bytes)
{
	switch (cpu->context.error) {
	case SPILE_E_DIVISION:
		return scnprintf(out, bytes, "division by 0");
	case SPILE_E_READ_FAULT:
		return scnprintf(out, bytes, "read fault [man error::fault] at 0x%llx", cpu->detail);
	case SPILE_E_WRITE_FAULT:
		return scnprintf(out, bytes, "write fault [man error::fault] at 0x%llx", cpu->detail);
	case SPILE_E_ACTIONS:
		return scnprintf(out, bytes, "MAXACTION exceeded");
	case SPILE_E_NESTING:
		return scnprintf(out, bytes, "MAXNESTING exceeded");
	case SPILE_E_MESSAGE:
		return scnprintf(out, bytes, "%s", cpu->message);
	default:
		return scnprintf(out, bytes, "error %d", cpu->context.error);
	}
}

unsigned int spile_catch(struct spile_context *c, char *out, unsigned int *length)
{
	if (c->error == SPILE_E_ACTIONS || c->error == SPILE_E_ABORT)
		return 0;
	*length = error_text(spile_cpu_of(c), out, spile_script.string_bytes);
	c->error = SPILE_OK;
	return 1;
}

bool spile_guard_report(struct spile_cpu *cpu)
{
	struct spile_context *c = &cpu->context;
	unsigned int length;

	if (c->error == SPILE_E_ABORT)
		return false;
	if (c->error != SPILE_E_MESSAGE)
		length = error_text(cpu, cpu->message, spile_message_bytes());
	else
		length = strlen(cpu->message);
	spile_ring_text(cpu, SPILE_RECORD_ERROR, c->location, cpu->message, length);

	if (atomic_inc_return(&spile_session.errors) > (int)spile_script.max_errors) {
		WRITE_ONCE(spile_session.failed, true);
		spile_session_ask_stop(cpu);
	}
	return true;
}

void spile_guard_skipped(struct spile_cpu *cpu)
{
	static const char text[] =
		"Skipped too many probes, check MAXSKIPPED or try again with stap -t for more details.";

	/* The one run that crosses the line tells it. */
	if (atomic_inc_return(&spile_session.skipped) != (int)spile_script.max_skipped + 1)
		return;
	cpu->context.probe = NULL;
	spile_ring_text(cpu, SPILE_RECORD_ERROR, SPILE_NO_LOCATION, text, sizeof(text) - 1);
	WRITE_ONCE(spile_session.failed, true);
	spile_session_ask_stop(cpu);
}
