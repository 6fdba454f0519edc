/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The code around each run of a handler. It is inline, because it is most of the cost of a hit.
 * Families with frequent hits use this; others call spile_context_run(), which is the same out
 * of line.
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
#include "optional.h"
#include "return_pool.h"
#include "session.h"
#include "site.h"
#include "stack_left.h"

/* Counts of the probe that is running. The context is owned. */
static inline struct spile_counts *spile_counts_of_run(struct spile_cpu *cpu)
{
	return &cpu->counts[cpu->context.probe->index];
}

static noinline bool spile_run_skipped(struct spile_cpu *cpu, local_t *count)
{
	local_inc(count);
	spile_guard_skipped(cpu);
	return false;
}

static noinline bool spile_run_lock_skipped(struct spile_cpu *cpu, bool entering)
{
	struct spile_counts *counts = spile_counts_of_run(cpu);

	if (!entering)
		local_dec(&counts->handled);
	local_inc(&counts->lock_skipped);
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

/* Does the rest of the work after a run, and leaves the context as the next run expects it. */
static noinline bool spile_run_ended(struct spile_cpu *cpu, bool entering)
{
	struct spile_counts *counts = spile_counts_of_run(cpu);
	struct spile_context *c = &cpu->context;
	bool fine = !c->error;

	if (unlikely(c->stale & SPILE_STALE_LOCKED)) {
		fine = spile_run_lock_skipped(cpu, entering);
	} else if (c->filtered) {
		local_inc(&counts->filtered);
		if (!entering)
			local_dec(&counts->handled);
	} else if (entering && !fine) {
		local_inc(&counts->handled);
	}
	c->filtered = 0;
	if (c->error)
		spile_run_failed(cpu, counts);
	if (c->stale & SPILE_STALE_CONDITIONS)
		spile_call_if_there(spile_conditions_look, cpu);
	if (unlikely(c->stale & SPILE_STALE_LONG))
		spile_guard_long_run(cpu);
	spile_forget_run(cpu);
	cpu->asked = 0;
	return fine;
}

/* The kind of a run; constants, so that each kind has code of its own. */
enum spile_run_kind {
	SPILE_RUN_ENTERING = 1,	/* the entry handler of a .return */
	SPILE_RUN_RETURNING = 2, /* of a .return, or of a system call's: has values of the entry */
	SPILE_RUN_SIMPLE = 4,	/* spile_probe.simple, or entry_simple */
};

static inline struct spile_counts *spile_counts_of(struct spile_cpu *cpu,
						   const struct spile_site *site)
{
	return (struct spile_counts *)((char *)cpu + site->counts_at);
}

static __always_inline void spile_run_code(struct spile_context *c, const struct spile_probe *probe,
					   unsigned int kind)
{
	if (kind & SPILE_RUN_ENTERING)
		probe->entry_handler(c);
	else
		probe->handler(c);
}

static __always_inline bool spile_run_lock(const struct spile_probe *probe, unsigned int kind)
{
	return kind & SPILE_RUN_ENTERING ?
		       spile_lock_all(probe->entry_locks, probe->entry_lock_count) :
		       spile_lock_all(probe->locks, probe->lock_count);
}

static __always_inline void spile_run_unlock(const struct spile_probe *probe, unsigned int kind)
{
	if (kind & SPILE_RUN_ENTERING)
		spile_unlock_all(probe->entry_locks, probe->entry_lock_count);
	else
		spile_unlock_all(probe->locks, probe->lock_count);
}

/*
 * Runs the handler with its locks, in a context that is owned. Few values are live across the
 * call, because they would have to be saved.
 */
static __always_inline bool spile_run_handler(struct spile_cpu *cpu,
					      const struct spile_probe *probe, unsigned int kind)
{
	struct spile_context *c = &cpu->context;
	bool entering = kind & SPILE_RUN_ENTERING;

	if (!(kind & SPILE_RUN_SIMPLE))
		c->begun = spile_begun;
	/* Two calls, so that locks are tested only once. */
	if (kind & SPILE_RUN_SIMPLE || !(entering ? probe->entry_lock_count : probe->lock_count)) {
		spile_run_code(c, probe, kind);
	} else {
		if (unlikely(!spile_run_lock(probe, kind))) {
			c->stale |= SPILE_STALE_LOCKED;
			return spile_run_ended(cpu, entering);
		}
		spile_run_code(c, probe, kind);
		spile_run_unlock(READ_ONCE(c->probe), kind);
	}
	if (unlikely(c->left))
		return spile_run_ended(cpu, entering);
	return true;
}

/* A timed run (spile_untimed). */
static noinline bool spile_run_timed(struct spile_cpu *cpu, struct spile_counts *counts,
				     bool entering)
{
	const struct spile_probe *probe = cpu->context.probe;
	u64 began = get_cycles();
	bool fine;

	if (entering) {
		fine = spile_run_handler(cpu, probe, SPILE_RUN_ENTERING);
	} else {
		local_inc(&counts->handled);
		fine = spile_run_handler(cpu, probe, 0);
	}
	spile_guard_overload(cpu, counts, began);
	return fine;
}

/* Counts the run before the handler is called, so that nothing need be saved across the call. */
static __always_inline bool spile_run_counted(struct spile_cpu *cpu, struct spile_counts *counts,
					      const struct spile_probe *probe, unsigned int kind)
{
	if (unlikely(!(local_read(&counts->handled) & spile_untimed)))
		return spile_run_timed(cpu, counts, kind & SPILE_RUN_ENTERING);
	if (!(kind & SPILE_RUN_ENTERING))
		local_inc(&counts->handled);
	return spile_run_handler(cpu, probe, kind);
}

/* The same if the stack is not the task's, or little of it is left. */
static noinline bool spile_run_elsewhere(struct spile_cpu *cpu, const struct spile_site *site,
					 bool entering)
{
	struct spile_counts *counts = spile_counts_of(cpu, site);

	if (!spile_stack_elsewhere_suffices(cpu, site))
		return spile_run_skipped(cpu, &counts->low_stack);
	return entering ? spile_run_counted(cpu, counts, site->probe, SPILE_RUN_ENTERING) :
			  spile_run_counted(cpu, counts, site->probe, 0);
}

/*
 * As spile_context_run() (context.h). SPILE_RUN_ENTERING: the hit is counted when it
 * returns, or fails. Between runs a context has no error, depth 0, nothing stale, and all
 * of its frame free.
 */
static __always_inline bool spile_run(struct spile_site *site, enum spile_state state,
				      unsigned int kind, unsigned long *regs, char *entry)
{
	struct spile_cpu *cpu = spile_this_cpu();
	struct spile_context *c = &cpu->context;
	const struct spile_probe *probe;
	bool fine;

	/* A hit that races with a change of state may be handled as before or after it. */
	if (unlikely(data_race(spile_session_state) != state)) {
		local_inc(&spile_counts_of(cpu, site)->stopped);
		return false;
	}
	/*
	 * A plain load and store: only this CPU accesses busy, and an interrupt between
	 * the two restores it before it returns.
	 */
	if (unlikely(data_race(c->busy) == 1)) {
		local_inc(&spile_counts_of(cpu, site)->nested);
		return false;
	}
	WRITE_ONCE(c->busy, 1);
	/* Compiler only: interrupts on this CPU see busy before any effect of the run. */
	barrier();

	probe = site->probe;
	c->probe = probe;
	c->regs = regs;
	if (kind & (SPILE_RUN_ENTERING | SPILE_RUN_RETURNING))
		c->entry = entry;
	if (likely(spile_stack_suffices(site)))
		fine = spile_run_counted(cpu, spile_counts_of(cpu, site), probe, kind);
	else
		fine = spile_run_elsewhere(cpu, site, kind & SPILE_RUN_ENTERING);
	/* Compiler only: interrupts on this CPU see the end of the run after all of its effects. */
	barrier();
	WRITE_ONCE(c->busy, 0);
	return fine;
}

/*
 * The same for a probe that does nothing but add a number to a counter: its own count and
 * that one. Preemption off; interrupts may come in between.
 */
static __always_inline void spile_run_adding(struct spile_site *site)
{
	struct spile_cpu *cpu = spile_this_cpu();

	/* As in spile_run(). */
	if (unlikely(data_race(spile_session_state) != SPILE_STATE_RUNNING)) {
		local_inc(&spile_counts_of(cpu, site)->stopped);
		return;
	}
	local_inc(&spile_counts_of(cpu, site)->handled);
	local_add(site->addend, (local_t *)((char *)cpu + site->counter_at));
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

/* The same for a handler that reads registers: no other run uses them. */
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
 * A hit while the session runs. Any context, preemption off. Interrupts may be on: they
 * wait, because hits of an interrupt while a handler runs would be lost as nested
 * (measured: one in five ticks of a timer probe under a load of prints), and because the
 * locks of the handler would be held for longer.
 */
static __always_inline bool spile_run_hit(struct spile_site *site, unsigned int kind,
					  unsigned long *regs, char *entry)
{
	unsigned long flags;
	bool fine;

	raw_local_irq_save(flags);
	fine = spile_run(site, SPILE_STATE_RUNNING, kind, regs, entry);
	raw_local_irq_restore(flags);
	return fine;
}

/*
 * Out of line, so that a probe that only counts need not save the registers that these functions
 * use.
 */
static noinline void spile_run_simple(struct spile_site *site, unsigned long *regs)
{
	spile_run_hit(site, SPILE_RUN_SIMPLE, regs, NULL);
}

static noinline void spile_run_whole(struct spile_site *site, unsigned long *regs)
{
	spile_run_hit(site, 0, regs, NULL);
}

/* A hit of a site whose handler is not run at once: it only counts, or runs later. */
static __always_inline void spile_run_otherwise(struct spile_site *site, unsigned long *regs)
{
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

/* SPILE_RUNS_ADDING. */
static __always_inline void spile_run_addition(struct spile_site *site)
{
	preempt_disable_notrace();
	spile_run_adding(site);
	preempt_enable_notrace();
}

/* Handles a hit of any site. Preemption may be on. */
static __always_inline void spile_run_site(struct spile_site *site, unsigned long *regs)
{
	if (site->runs == SPILE_RUNS_SIMPLE)
		spile_run_simple(site, regs);
	else if (site->runs == SPILE_RUNS_WHOLE)
		spile_run_whole(site, regs);
	else if (site->runs == SPILE_RUNS_ADDING)
		spile_run_addition(site);
	else
		spile_run_otherwise(site, regs);
}

#endif
