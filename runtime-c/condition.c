// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `if (...)` after a probe point. The handler tests it at each hit; beyond that, a
 * probe whose condition is false is turned off: its breakpoint is removed, or ftrace no
 * longer calls it, so that it costs nothing. After each handler that writes a variable
 * of a condition the conditions are evaluated, and where one has changed a work item,
 * which may sleep, turns its probe on or off.
 *
 * And probes that a user switches off and on while the session runs (SPILE_SWITCH).
 */
#include <linux/workqueue.h>

#include "actions.h"
#include "condition.h"
#include "context.h"
#include "family.h"
#include "features.h"
#include "irq_work.h"
#include "lock.h"
#include "session.h"

static void turn_all(struct work_struct *unused);
static DECLARE_DELAYED_WORK(turning, turn_all);

/* Handlers run in contexts in which a work item cannot be queued. */
static void begin_turning(struct irq_work *unused)
{
	/* Also if the next try for one that is late is due in a second. */
	mod_delayed_work(spile_unbound_queue(), &turning, 0);
}
static struct irq_work request;
/*
 * A request has not been served yet. Without it a handler in the irq_work's own interrupt would
 * request the next one again and again, and the work item would never run on that CPU.
 */
static atomic_t requested;

enum verdict { VERDICT_ON, VERDICT_OFF, VERDICT_UNKNOWN };

/*
 * The condition's value now; VERDICT_UNKNOWN while the locks of globals that it reads are
 * held by others. If it fails, the handler may run: it fails in the same way and reports
 * it. The context is owned, between runs. All conditions that a run evaluates share the
 * statements that it has left.
 */
static enum verdict evaluate(struct spile_cpu *cpu, const struct spile_probe *probe)
{
	struct spile_context *c = &cpu->context;
	bool off;

	if (!spile_lock_all(probe->condition_locks, probe->condition_lock_count))
		return VERDICT_UNKNOWN;
	c->probe = probe;
	probe->condition(c);
	spile_unlock_all(probe->condition_locks, probe->condition_lock_count);
	off = c->filtered && !c->error;
	c->filtered = 0;
	c->error = SPILE_OK;
	return off ? VERDICT_OFF : VERDICT_ON;
}

static bool may_turn(const struct spile_site *site)
{
	return site->probe->condition && READ_ONCE(site->armed) && site->family->turn &&
	       !READ_ONCE(site->switched_off);
}

void spile_conditions_look(struct spile_cpu *cpu)
{
	const struct spile_probe *probe = cpu->context.probe;
	unsigned int i;

	if (READ_ONCE(spile_session_state) != SPILE_STATE_RUNNING)
		return;
	/*
	 * Numbers without a lock are visible before the states of sites are read; pairs with the
	 * barriers in turn_by() and spile_condition_apply().
	 */
	smp_mb();
	for (i = 0; i < spile_script.probe_count; i++) {
		const struct spile_site *site = &spile_sites[i];
		enum verdict verdict;

		if (!may_turn(site))
			continue;
		verdict = evaluate(cpu, site->probe);
		if (verdict != (READ_ONCE(site->off) ? VERDICT_OFF : VERDICT_ON) &&
		    !READ_ONCE(site->is_late)) {
			/* On a CPU that goes offline: the next handler asks again. */
			if (!atomic_xchg(&requested, 1) && !spile_irq_work_queue(&request))
				atomic_set(&requested, 0);
			break;
		}
	}
	cpu->context.probe = probe;
}

static enum verdict evaluate_in_task(const struct spile_site *site)
{
	struct spile_cpu *cpu;
	unsigned long flags;
	enum verdict verdict;

	if (!site->probe->condition)
		return VERDICT_ON;
	cpu = spile_context_claim();
	/* A handler that interrupts this code would find the locks held. */
	local_irq_save(flags);
	spile_actions_begin(cpu);
	verdict = evaluate(cpu, site->probe);
	spile_forget_run(cpu);
	spile_actions_begin(cpu);
	local_irq_restore(flags);
	spile_context_release(cpu);
	return verdict;
}

static void turn(struct spile_site *site, bool off)
{
	if (site->off == off)
		return;
	/* Stored first: a handler that changes the condition from now on requests another turn. */
	WRITE_ONCE(site->off, off);
	site->family->turn(site, !off);
}

/*
 * Turns it by this verdict, if that can be done now. False if the condition has changed since
 * that: the handler that changed it may have compared with the old site->off or is_late, and
 * requested nothing.
 */
static bool turn_by(struct spile_site *site, enum verdict verdict)
{
	turn(site, verdict == VERDICT_OFF);
	WRITE_ONCE(site->is_late, site->off != (verdict == VERDICT_OFF));
	/* The condition is read after that; pairs with the barrier in spile_conditions_look(). */
	smp_mb();
	return evaluate_in_task(site) == verdict;
}

/* Of several sites that one kprobe serves none can be turned off by itself. */
static bool turns_alone(const struct spile_site *site)
{
	return site->family->turn && !site->served_by;
}

/* Hits take the way of sampled ones from now on, where spile_budget_skips() finds switched_off. */
static void turn_away(struct spile_site *site)
{
	if (site->sampled)
		return;
	site->runs_sampled = site->runs;
	/* A hit that sees the new way sees the old one, too. */
	smp_wmb();
	WRITE_ONCE(site->runs, SPILE_RUNS_SAMPLED);
	WRITE_ONCE(site->sampled, true);
}

static void switch_off(struct spile_site *site)
{
	if (turns_alone(site))
		turn(site, true);
	/* Or it cannot be turned now. */
	if (!site->off)
		turn_away(site);
}

void spile_condition_apply(struct spile_site *site)
{
	if (READ_ONCE(site->switched_off)) {
		switch_off(site);
		return;
	}
	/*
	 * The condition is read after it was armed or switched on; pairs with the barrier in
	 * spile_conditions_look().
	 */
	smp_mb();
	if (!may_turn(site) || evaluate_in_task(site) != VERDICT_OFF)
		return;
	if (!turn_by(site, VERDICT_OFF))
		schedule_delayed_work(&turning, 1);
	/* If it could not be turned, the next handler asks for it. */
	WRITE_ONCE(site->is_late, false);
}

static void apply_switch(struct spile_site *site)
{
	if (!site->armed)
		return;
	if (site->switched_off) {
		switch_off(site);
	} else if (turns_alone(site)) {
		turn(site, false);
		/* Its variables may have changed meanwhile. */
		spile_condition_apply(site);
		/* It may not have been possible. */
		if (site->off)
			schedule_delayed_work(&turning, HZ);
	}
	spile_families_commit();
}

struct switching {
	const struct spile_switch *request;
	struct spile_site *site;
	int error;
};

static void switch_in_worker(void *argument)
{
	struct switching *switching = argument;

	if (spile_session_state != SPILE_STATE_RUNNING) {
		switching->error = -EBUSY;
		return;
	}
	WRITE_ONCE(switching->site->switched_off, switching->request->off);
	apply_switch(switching->site);
}

int spile_condition_switch(const struct spile_switch *request)
{
	struct switching switching = { .request = request };

	if (request->off > 1)
		return -EINVAL;
	if (request->probe >= spile_script.probe_count)
		return -ENOENT;
	switching.site = &spile_sites[request->probe];
	if (!switching.site->family)
		return -EOPNOTSUPP;
	return spile_session_ask_locked(switch_in_worker, &switching) ?: switching.error;
}

static void turn_all(struct work_struct *unused)
{
	bool again = false, late = false;
	unsigned int i;

	/* Before the conditions are evaluated: a change after that requests another turn. */
	atomic_xchg(&requested, 0);
	mutex_lock(&spile_session.lock);
	for (i = 0; i < spile_script.probe_count && spile_session_state == SPILE_STATE_RUNNING;
	     i++) {
		struct spile_site *site = &spile_sites[i];
		enum verdict verdict;

		/* Also one that could not be put back when it was switched on. */
		if (!may_turn(site) && !(site->off && !site->switched_off)) {
			WRITE_ONCE(site->is_late, false);
			continue;
		}
		verdict = evaluate_in_task(site);
		if (verdict == VERDICT_UNKNOWN)
			again = true;
		else
			again |= !turn_by(site, verdict);
		late |= site->is_late;
		cond_resched();
	}
	if (spile_session_state == SPILE_STATE_RUNNING)
		spile_families_commit();
	mutex_unlock(&spile_session.lock);
	if (again || late)
		schedule_delayed_work(&turning, again ? 1 : HZ);
}

void spile_conditions_init(void)
{
	init_irq_work(&request, begin_turning);
}

/* No handler runs any more. */
void spile_conditions_exit(void)
{
	irq_work_sync(&request);
	cancel_delayed_work_sync(&turning);
}
