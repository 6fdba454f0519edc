/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is common to all handler runs: inline, because it is most of the cost of a hit.
 * Families with frequent hits use this, others call spile_context_run(), which is the
 * same out of line.
 */
#ifndef SPILE_RUN_H
#define SPILE_RUN_H

#include <linux/irqflags.h>
#include <linux/preempt.h>
#include <linux/timex.h>

#include "actions.h"
#include "condition.h"
#include "context.h"
#include "guard.h"
#include "lock.h"
#include "return_pool.h"
#include "session.h"
#include "site.h"
#include "stack_left.h"

static noinline bool spile_run_skipped(struct spile_cpu *cpu, local_t *count)
{
	local_inc(count);
	spile_guard_skipped(cpu);
	return false;
}

static noinline bool spile_run_lock_skipped(struct spile_cpu *cpu, local_t *count)
{
	local_inc(count);
	spile_guard_lock_skipped(cpu);
	return false;
}

/* The run ended with an error: reports it. */
static inline void spile_run_failed(struct spile_cpu *cpu, struct spile_counts *counts)
{
	if (spile_guard_report(cpu))
		local_inc(&counts->errors);
	cpu->context.error = SPILE_OK;
	cpu->context.next = 0;
	cpu->context.depth = 0;
	cpu->context.frame = cpu->frame;
}

/*
 * More is to be done after this run than to count it. Leaves the context as the next
 * run expects it.
 */
static noinline bool spile_run_ended(struct spile_cpu *cpu, struct spile_counts *counts,
				     bool entering)
{
	struct spile_context *c = &cpu->context;
	bool fine = !c->error;

	if (unlikely(c->stale & SPILE_STALE_LOCKED)) {
		fine = false;
		spile_run_lock_skipped(cpu, &counts->lock_skipped);
	} else if (c->filtered)
		local_inc(&counts->filtered);
	else if (!entering || !fine)
		local_inc(&counts->handled);
	c->filtered = 0;
	if (c->error)
		spile_run_failed(cpu, counts);
	if (c->stale & SPILE_STALE_RUN) {
		cpu->match.groups = 0;
		cpu->token_end = 0;
		cpu->stack_kind = SPILE_STACK_NONE;
	}
	if (c->stale & SPILE_STALE_CONDITIONS)
		spile_conditions_look(cpu);
	c->stale = 0;
	cpu->asked = 0;
	return fine;
}

static inline struct spile_counts *spile_counts_of(struct spile_cpu *cpu,
						   const struct spile_site *site)
{
	return (struct spile_counts *)((char *)cpu->counts + site->counts_at);
}

static __always_inline void spile_run_code(struct spile_context *c, bool entering)
{
	if (entering)
		c->probe->entry_handler(c);
	else
		c->probe->handler(c);
}

static __always_inline bool spile_run_lock(struct spile_context *c, bool entering)
{
	return entering ? spile_lock_all(c->probe->entry_locks, c->probe->entry_lock_count)
			: spile_lock_all(c->probe->locks, c->probe->lock_count);
}

static __always_inline void spile_run_unlock(struct spile_context *c, bool entering)
{
	if (entering)
		spile_unlock_all(c->probe->entry_locks, c->probe->entry_lock_count);
	else
		spile_unlock_all(c->probe->locks, c->probe->lock_count);
}

/*
 * The handler with its locks, in a context that is owned. Few values are live across
 * the call, because they would have to be saved.
 */
static __always_inline bool spile_run_handler(struct spile_cpu *cpu, struct spile_counts *counts,
					      bool entering, unsigned long *regs, char *entry)
{
	struct spile_context *c = &cpu->context;

	c->regs = regs;
	c->entry = entry;
	c->actions = spile_actions_at_once;
	c->location = SPILE_NO_LOCATION;
	/* Two calls of it, so that a probe without locks is not asked for them twice. */
	if (!(entering ? c->probe->entry_lock_count : c->probe->lock_count)) {
		spile_run_code(c, entering);
	} else {
		if (unlikely(!spile_run_lock(c, entering)))
			return spile_run_lock_skipped(cpu, &counts->lock_skipped);
		spile_run_code(c, entering);
		spile_run_unlock(c, entering);
	}
	if (unlikely(c->error | c->filtered | c->stale))
		return spile_run_ended(cpu, counts, entering);
	if (!entering)
		local_inc(&counts->handled);
	return true;
}

/* One run in some (spile_untimed). */
static noinline bool spile_run_timed(struct spile_cpu *cpu, struct spile_counts *counts,
				     bool entering, unsigned long *regs, char *entry)
{
	u64 began = get_cycles();
	bool fine = spile_run_handler(cpu, counts, entering, regs, entry);

	spile_guard_overload(cpu, counts, began);
	return fine;
}

/*
 * As spile_context_run() (context.h). entering: the entry handler of a .return,
 * whose hit is counted when it returns, or fails. Between runs a context has no error,
 * depth 0, nothing stale, and all of its frame free.
 */
static __always_inline bool spile_run(struct spile_site *site, enum spile_state state,
				      bool entering, unsigned long *regs, char *entry)
{
	struct spile_cpu *cpu = spile_this_cpu();
	struct spile_counts *counts = spile_counts_of(cpu, site);
	bool fine;

	if (unlikely(READ_ONCE(spile_session_state) != state)) {
		local_inc(&counts->stopped);
		return false;
	}
	/*
	 * A plain load and store: only this CPU accesses busy, and an interrupt between
	 * the two restores it before it returns.
	 */
	if (unlikely(READ_ONCE(cpu->busy))) {
		local_inc(&counts->nested);
		return false;
	}
	WRITE_ONCE(cpu->busy, 1);
	/* Compiler only: interrupts of this CPU see busy before anything that the run does. */
	barrier();

	cpu->context.probe = site->probe;
	if (unlikely(!spile_stack_suffices(cpu, site)))
		fine = spile_run_skipped(cpu, &counts->low_stack);
	else if (unlikely(!(local_read(&counts->handled) & spile_untimed)))
		fine = spile_run_timed(cpu, counts, entering, regs, entry);
	else
		fine = spile_run_handler(cpu, counts, entering, regs, entry);
	/* Compiler only: the run is over before interrupts of this CPU see that. */
	barrier();
	WRITE_ONCE(cpu->busy, 0);
	return fine;
}

/*
 * The same for a probe that only counts (spile_probe.counts_only): its handler
 * touches nothing but counters, each with one instruction, so it needs neither the
 * CPU's context nor exclusion, and interrupts may come in between. Preemption off.
 */
static noinline void spile_run_counting(struct spile_site *site)
{
	struct spile_cpu *cpu = spile_this_cpu();
	struct spile_counts *counts = spile_counts_of(cpu, site);

	if (unlikely(READ_ONCE(spile_session_state) != SPILE_STATE_RUNNING)) {
		local_inc(&counts->stopped);
		return;
	}
	local_inc(&counts->handled);
	site->counting(&cpu->context);
}

/* The same for one that looks at registers: they are no other run's. */
static noinline void spile_run_counting_by(struct spile_site *site, unsigned long *regs)
{
	struct spile_cpu *cpu = spile_this_cpu();
	struct spile_counts *counts = spile_counts_of(cpu, site);
	struct spile_counting c = { .regs = regs, .counters = cpu->context.counters };

	BUILD_BUG_ON(offsetof(struct spile_counting, regs) != offsetof(struct spile_context, regs));
	BUILD_BUG_ON(offsetof(struct spile_counting, counters) !=
		     offsetof(struct spile_context, counters));
	if (unlikely(READ_ONCE(spile_session_state) != SPILE_STATE_RUNNING)) {
		local_inc(&counts->stopped);
		return;
	}
	local_inc(&counts->handled);
	site->counting((struct spile_context *)&c);
}

/*
 * A hit while the session runs. Any context, preemption off. Interrupts may be on:
 * they wait, because what an interrupt hits while a handler runs would be lost as
 * nested (measured: one in five ticks of a timer probe under a load of prints), and
 * because the locks of the handler would be held for longer.
 */
static __always_inline bool spile_run_hit(struct spile_site *site, bool entering,
					  unsigned long *regs, char *entry)
{
	unsigned long flags;
	bool fine;

	raw_local_irq_save(flags);
	fine = spile_run(site, SPILE_STATE_RUNNING, entering, regs, entry);
	raw_local_irq_restore(flags);
	return fine;
}

/* Out of line, so that a probe that only counts need not save the registers that this wants. */
static noinline void spile_run_whole(struct spile_site *site, unsigned long *regs)
{
	spile_run_hit(site, false, regs, NULL);
}

/* What a hit of a site does, of whatever kind. Preemption may be on. */
static __always_inline void spile_run_site(struct spile_site *site, unsigned long *regs)
{
	if (site->runs == SPILE_RUNS_WHOLE) {
		spile_run_whole(site, regs);
		return;
	}
	preempt_disable_notrace();
	if (site->runs == SPILE_RUNS_COUNTING)
		spile_run_counting(site);
	else if (site->runs == SPILE_RUNS_AT_RETURN)
		spile_kretprobe_enter(site, (struct pt_regs *)regs);
	else if (site->runs == SPILE_RUNS_COUNTING_BY)
		spile_run_counting_by(site, regs);
	else if (site->runs == SPILE_RUNS_AT_POOLED_RETURN)
		spile_return_pool_enter(site, (struct pt_regs *)regs);
	else
		spile_run_sampled(site, regs);
	preempt_enable_notrace();
}

#endif
