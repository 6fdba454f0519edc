// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Run-time errors of scripts. The strings are those of SystemTap; the loader, which has the table
 * of locations, adds the place ("near operator '/' at ...").
 */
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/timekeeping.h>
#include <linux/timex.h>

#include "all_sessions.h"
#include "guard.h"
#include "optional.h"
#include "owner.h"
#include "ring.h"
#include "session.h"

void spile_fail(struct spile_context *c, enum spile_error error, spile_ulong detail)
{
	if (c->error)
		return;
	c->error = error;
	spile_cpu_of(c)->detail = detail;
	/* A call that is nested too deeply is the place of the error. */
	spile_cpu_of(c)->calls = error == SPILE_E_NESTING ? -1 : 0;
}

void spile_fail_text_of(struct spile_context *c, const char *format, va_list arguments)
{
	if (c->error)
		return;
	vsnprintf(spile_cpu_of(c)->message, spile_message_bytes(), format, arguments);
	c->error = SPILE_E_MESSAGE;
	spile_cpu_of(c)->calls = 0;
}

void spile_fail_text(struct spile_context *c, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	spile_fail_text_of(c, format, arguments);
	va_end(arguments);
}

void spile_called_from(struct spile_context *c, unsigned int location)
{
	struct spile_cpu *cpu = spile_cpu_of(c);

	if (cpu->calls >= 0 && cpu->calls < SPILE_CALLS_REPORTED)
		cpu->called_from[cpu->calls] = location;
	cpu->calls++;
}

/* Writes the message of the error that is set; returns its length. */
static unsigned int error_text(struct spile_cpu *cpu, char *out, unsigned int bytes)
{
	switch (cpu->context.error) {
	case SPILE_E_DIVISION:
		return scnprintf(out, bytes, "division by 0");
	case SPILE_E_READ_FAULT:
		return scnprintf(out, bytes, "read fault [man error::fault] at 0x%llx",
				 cpu->detail);
	case SPILE_E_WRITE_FAULT:
		return scnprintf(out, bytes, "write fault [man error::fault] at 0x%llx",
				 cpu->detail);
	case SPILE_E_ACTIONS:
		return scnprintf(out, bytes, "MAXACTION exceeded");
	case SPILE_E_TIME:
		return scnprintf(
			out, bytes,
			"the handler has run for %llu cycles: too long (STP_OVERLOAD_THRESHOLD)",
			cpu->detail);
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
	if (c->error >= SPILE_E_ACTIONS)
		return 0;
	*length = error_text(spile_cpu_of(c), out, spile_script.string_bytes);
	c->error = SPILE_OK;
	return 1;
}

bool spile_guard_report(struct spile_cpu *cpu)
{
	struct spile_context *c = &cpu->context;
	unsigned int length;

	if (unlikely(c->error >= SPILE_E_ABORT))
		return false;
	/* Errors are handled as in a try; only those that cannot be caught are reported. */
	if (spile_script.suppress_errors && c->error < SPILE_E_ACTIONS) {
		atomic_inc(&spile_session.suppressed);
		return true;
	}
	if (c->error != SPILE_E_MESSAGE)
		length = error_text(cpu, cpu->message, spile_message_bytes());
	else
		length = strlen(cpu->message);
	spile_ring_error(cpu, cpu->message, length);

	if (atomic_inc_return(&spile_session.errors) > (int)spile_script.max_errors) {
		WRITE_ONCE(spile_session.failed, true);
		spile_session_ask_stop(cpu);
	}
	return true;
}

/* Ends the session with an error that belongs to no place in the script. */
static __printf(2, 0) void give_up_of(struct spile_cpu *cpu, const char *format, va_list arguments)
{
	cpu->context.probe = NULL;
	spile_ring_format_of(cpu, SPILE_RECORD_ERROR, SPILE_NO_LOCATION, format, arguments);
	atomic_inc(&spile_session.errors);
	WRITE_ONCE(spile_session.failed, true);
	spile_session_ask_stop(cpu);
}

static __printf(2, 3) void give_up(struct spile_cpu *cpu, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	give_up_of(cpu, format, arguments);
	va_end(arguments);
}

void spile_guard_end(const char *format, ...)
{
	struct spile_cpu *cpu = spile_context_claim();
	va_list arguments;

	va_start(arguments, format);
	give_up_of(cpu, format, arguments);
	va_end(arguments);
	spile_context_release(cpu);
}

static void skipped_too_many(struct spile_cpu *cpu)
{
	/* Several CPUs may cross the limit: one reports it. */
	if (!atomic_xchg(&spile_session.skips_reported, 1))
		give_up(cpu,
			"Skipped too many probes, check MAXSKIPPED or try again with stap -t for more details.");
}

void spile_guard_skipped(struct spile_cpu *cpu)
{
	if ((u32)atomic_inc_return(&spile_session.skipped) > spile_script.max_skipped)
		skipped_too_many(cpu);
}

/*
 * If a hypervisor preempts the CPU of a lock's holder, the script is not to blame: MAXSKIPPED
 * applies to the skips of one CPU in one second. All CPUs together skip as many hits in a single
 * millisecond in which a holder does not run. Each skip has waited for spile_script.lock_wait, so
 * more skips than that are a considerable part of the CPU's time.
 */
void spile_guard_lock_skipped(struct spile_cpu *cpu)
{
	u64 now = ktime_get_mono_fast_ns();

	if (now - cpu->lock_skips_since >= NSEC_PER_SEC) {
		cpu->lock_skips_since = now;
		cpu->lock_skips = 0;
	}
	if (++cpu->lock_skips > spile_script.max_skipped)
		skipped_too_many(cpu);
}

unsigned long spile_untimed __read_mostly = SPILE_OVERLOAD_SAMPLE - 1;

static u64 overload_threshold(void)
{
	return spile_script.overload_threshold ?: 500000000;
}

/*
 * Whether this is the session that ends where all together take too much: the one that takes the
 * most of this CPU; of users with limits, if it is enough that their sessions end. Each session finds
 * the same.
 */
static bool is_first_to_end(u32 own, u32 excess, const struct spile_other_shares *others)
{
	bool is_limited = spile_owner_has_limit();

	if (others->limited + (is_limited ? own : 0) >= excess)
		return is_limited && own >= others->most_limited;
	return own >= others->most;
}

/*
 * Ends the session if the handlers of all sessions together take too much: they may leave half as much
 * as those of one.
 */
static void judge_all_sessions(struct spile_cpu *cpu, u64 now, u64 elapsed)
{
	enum { ALL = SPILE_ALL_OF_A_CPU };
	u64 interval = spile_script.overload_interval ?: 1000000000;
	u64 threshold = overload_threshold();
	u32 own = min_t(u64, div64_u64(cpu->overload_cycles * ALL, elapsed), ALL);
	struct spile_other_shares others = {};
	u32 all, limit;

	if (READ_ONCE(spile_session_state) != SPILE_STATE_RUNNING)
		own = 0;
	spile_call_if_there(spile_sessions_share, own, now, elapsed, &others);
	if (threshold >= interval)
		return;
	limit = (div64_u64(threshold * ALL, interval) + ALL) / 2;
	all = own + others.all;
	if (all <= limit || !own || !is_first_to_end(own, all - limit, &others))
		return;
	give_up(cpu,
		"probe overhead of all sessions: their handlers took %u%% of this CPU's time, and may take %u%%; this session took %u%%, the most%s, and ends",
		all * 100 / ALL, limit * 100 / ALL, own * 100 / ALL,
		own < others.most ? " of those of users with limits" : "");
	spile_call_if_there(spile_sessions_share, 0, now, elapsed, &others);
}

/* Ends the session if, in the interval that is over, handlers took more than they may. */
static void judge_overload(struct spile_cpu *cpu, u64 now)
{
	u64 interval = spile_script.overload_interval ?: 1000000000;
	u64 threshold = overload_threshold();
	u64 elapsed = now - cpu->overload_since;

	if (elapsed < interval)
		return;
	/* A long interval means that hits were rare; the limit grows with it. */
	if (cpu->overload_cycles / div64_u64(elapsed, interval) > threshold &&
	    READ_ONCE(spile_session_state) == SPILE_STATE_RUNNING)
		give_up(cpu,
			"probe overhead (%llu cycles) exceeded threshold (%llu cycles) in last %llu cycles",
			cpu->overload_cycles, threshold, elapsed);
	judge_all_sessions(cpu, now, elapsed);
	cpu->overload_since = now;
	cpu->overload_cycles = 0;
}

/*
 * Limits the share of this CPU's time that handlers take, as SystemTap does, from one run in
 * SPILE_OVERLOAD_SAMPLE. A sample counts for at most 1/16 of the threshold: a run during which a
 * hypervisor took the CPU away must not look like a slow handler.
 */
void spile_guard_overload(struct spile_cpu *cpu, struct spile_counts *counts, u64 began)
{
	u64 now = get_cycles();
	u64 cycles = now - began;

	counts->cycles += cycles;
	counts->least_cycles = counts->timed ? min(counts->least_cycles, cycles) : cycles;
	counts->most_cycles = max(counts->most_cycles, cycles);
	counts->timed++;
	cpu->overload_cycles += min(cycles * (spile_untimed + 1), overload_threshold() / 16);
	judge_overload(cpu, now);
}

/*
 * Counts a run of many statements (actions.c), or one that has waited for locks (lock.c): their
 * own time is known, and counts as far as the samples count less. Runs that take nearly the whole
 * threshold each would otherwise look as if they took a fraction of it.
 */
void spile_guard_long_run(struct spile_cpu *cpu)
{
	u64 sampled = overload_threshold() / 16 / (spile_untimed + 1);
	u64 cycles = cpu->waited.cycles + (cpu->asked ? cpu->run_cycles : 0);

	cpu->waited = (struct spile_waited){};
	if (cycles <= sampled || READ_ONCE(spile_session_state) != SPILE_STATE_RUNNING)
		return;
	cpu->overload_cycles += cycles - sampled;
	judge_overload(cpu, get_cycles());
}
