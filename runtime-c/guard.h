/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Run-time errors: setting, catching, reporting them, and the budgets
 * (MAXERRORS, MAXSKIPPED, overload) that end the session. All for the owner of a context.
 */
#ifndef SPILE_GUARD_H
#define SPILE_GUARD_H

#include <linux/compiler.h>
#include <linux/kernel.h>

#include "context.h"

/* Sets SPILE_E_MESSAGE with this text, unless an error is set already. */
__printf(2, 3) void spile_fail_text(struct spile_context *c, const char *format, ...);
__printf(2, 0) void spile_fail_text_of(struct spile_context *c, const char *format,
				       va_list arguments);

/*
 * Reports a run that ended with context.error set: writes the record, counts it, and ends the
 * session when the budget is spent. False for abort(), which is not an error.
 */
bool spile_guard_report(struct spile_cpu *cpu);

/* Counts a handler that was skipped for lack of stack. */
void spile_guard_skipped(struct spile_cpu *cpu);
/* The same for lack of a lock, which is not the script's fault as long as it is rare. */
void spile_guard_lock_skipped(struct spile_cpu *cpu);
/* Ends the session with an error of its own. Process context. */
__printf(1, 2) void spile_guard_end(const char *format, ...);

/* Accounts for a timed run that began at that count of cycles and has ended. */
void spile_guard_overload(struct spile_cpu *cpu, struct spile_counts *counts, u64 began);
/* After a run with SPILE_STALE_LONG. Its waiting is over. */
void spile_guard_long_run(struct spile_cpu *cpu);

/* A run is timed when none of these bits is set in the number of runs before it. */
extern unsigned long spile_untimed;

#endif
