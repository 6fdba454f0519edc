// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Ends a run that does too much, or takes too long.
 *
 * A handler charges its statements at each place that it may reach repeatedly: at the head of a
 * loop, and in a function. Work that grows with the data (listing, sorting and deleting
 * elements, adding up CPUs, searching text) is charged in steps (script.h). A run has MAXACTION
 * statements, but gets them in portions of AT_ONCE: to get more it calls this file, which checks
 * the clock too. So a short run pays nothing for that.
 *
 * Between two checks of the clock there are 256 statements with their steps, which are 5 sorts
 * of 2048 elements, and whatever follows the last charge in the script. So the longest run takes
 * STP_OVERLOAD_THRESHOLD, 500000000 cycles unless it is set, and one such interval. With the
 * default of 10000 statements, a run that only sorts 2048 elements ends after 196 sorts (6.1).
 */
#include <linux/kernel.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/timex.h>

#include "actions.h"
#include "features.h"
#include "session.h"

enum {
	AT_ONCE = 256,
	TIMES_AS_LONG = 64,	/* times the usual limit for a run that lets other tasks run */
};

int spile_actions_at_once __read_mostly;
u64 spile_begun __read_mostly;

void spile_actions_init(void)
{
	/*
	 * The part of struct spile_context that is used here; the whole is too large for the
	 * stack.
	 */
	union {
		struct {
			int actions;
			unsigned int location;
		};
		u64 begun;
	} fresh = { .location = SPILE_NO_LOCATION };

	BUILD_BUG_ON(offsetof(struct spile_context, actions) !=
		     offsetof(struct spile_context, begun));
	BUILD_BUG_ON(offsetof(struct spile_context, location) -
		     offsetof(struct spile_context, begun) != sizeof(fresh.actions));
	spile_actions_at_once = min_t(unsigned int, spile_script.max_actions, AT_ONCE);
	fresh.actions = spile_actions_at_once;
	spile_begun = fresh.begun;
}

void spile_actions_begin(struct spile_cpu *cpu)
{
	cpu->context.begun = spile_begun;
	cpu->asked = 0;
	cpu->waited = (struct spile_waited){};
}

/* True in begin, end and error probes: no other handler runs, and interrupts are on. */
static bool may_reschedule(const struct spile_context *c)
{
#ifdef SPILE_HAVE_MIGRATE_DISABLE
	return c->probe && c->probe->kind <= SPILE_PROBE_ERROR && !irqs_disabled();
#else
	return false;
#endif
}

/*
 * Lets other tasks run. The context stays claimed: it belongs to this CPU, and this
 * task cannot migrate.
 */
static void reschedule(void)
{
#ifdef SPILE_HAVE_MIGRATE_DISABLE
	migrate_disable();
	preempt_enable();
	cond_resched();
	preempt_disable();
	migrate_enable();
#endif
}

/*
 * Adds the time since the last check. One interval counts for at most 1/16 of the threshold, as
 * a sample does (guard.c): a run during which a hypervisor took the CPU away must not look like
 * a slow handler.
 */
static bool is_late(struct spile_cpu *cpu, bool rests)
{
	u64 threshold = spile_script.overload_threshold ?: 500000000;
	u64 now = get_cycles();

	if (threshold == U64_MAX)
		return false;
	if (rests)
		threshold *= TIMES_AS_LONG;

	cpu->run_cycles += min(now - cpu->looked_at, threshold / 16);
	cpu->looked_at = now;
	return cpu->run_cycles > threshold;
}

void spile_actions_spent(struct spile_context *c)
{
	struct spile_cpu *cpu = spile_cpu_of(c);
	bool rests;
	s64 left;

	if (!cpu->asked) {
		cpu->asked = 1;
		cpu->actions_left = spile_script.max_actions - spile_actions_at_once;
		cpu->run_cycles = 0;
		cpu->looked_at = get_cycles();
		c->stale |= SPILE_STALE_LONG;
	}
	left = (s64)cpu->actions_left + c->actions;
	if (left < 0) {
		spile_fail(c, SPILE_E_ACTIONS, 0);
		return;
	}
	rests = may_reschedule(c);
	if (is_late(cpu, rests)) {
		spile_fail(c, SPILE_E_TIME, cpu->run_cycles);
		return;
	}
	if (rests) {
		reschedule();
		cpu->looked_at = get_cycles();
	}
	c->actions = min_t(s64, left, AT_ONCE);
	cpu->actions_left = left - c->actions;
}

void spile_steps_spent(struct spile_context *c, spile_ulong steps)
{
	enum { DEEPEST = -(1 << 30) };	/* further charges must not wrap */

	c->steps = steps % SPILE_STEPS;
	c->actions = max_t(s64, c->actions - (s64)(steps / SPILE_STEPS), DEEPEST);
}
