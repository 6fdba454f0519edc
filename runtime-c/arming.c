// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Arming thousands of probes takes the kernel seconds to minutes, most of it for
 * kprobes. It can be killed or interrupted, and other CPUs must not wait for this one
 * meanwhile.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "arming.h"
#include "budget.h"
#include "context.h"
#include "guard.h"
#include "session.h"
#include "site.h"

enum {
	/* fewer are not judged: their hits are seen soon enough when they run */
	MANY_SITES = 256,
	JUDGE_MILLISECONDS = 100,
	HIT_INSTRUCTIONS = 150,		/* of a hit, around its handler: docs/bench-runtime.md */
	/* tolerance: the estimate is not a measurement */
	MOST_SHARES = 2,
};

void spile_arming_cancel(void)
{
	WRITE_ONCE(spile_session.cancelled, true);
	spile_session_start_returns();
}

bool spile_arming_ended(void)
{
	return READ_ONCE(spile_session.cancelled) ||
	       READ_ONCE(spile_session_state) > SPILE_STATE_RUNNING;
}

unsigned int spile_step_begins(struct spile_steps *steps, unsigned int rest)
{
	steps->began = ktime_get_mono_fast_ns();
	return min(steps->size, rest);
}

void spile_step_ends(struct spile_steps *steps, unsigned int count)
{
	u64 took = max(ktime_get_mono_fast_ns() - steps->began, 1ull);
	u64 size = div64_u64((u64)count * SPILE_STEP_MILLISECONDS * NSEC_PER_MSEC, took);

	/* A short last step says little about a long one. */
	size = min_t(u64, size, 2 * (u64)steps->size);
	steps->size = clamp_t(u64, size, steps->least, SPILE_STEP_MOST);
}

bool spile_arming_goes_on(void)
{
	cond_resched();
	return !spile_arming_ended();
}

/*
 * Instructions that the hits on a CPU, which were turned away since the last look,
 * would have taken; *dearest: the site with most of them.
 */
static u64 stopped_hits_cost(int cpu, u64 *before, struct spile_site **dearest)
{
	u64 all = 0, most = 0;
	unsigned int i;

	for (i = 0; i < spile_script.probe_count; i++) {
		struct spile_counts *counts = &per_cpu(spile_cpus, cpu)->counts[i];
		u64 hits = local_read(&counts->stopped), cost;

		cost = (hits - before[i]) * (HIT_INSTRUCTIONS + spile_sites[i].probe->cost);
		all += cost;
		if (cost > most) {
			most = cost;
			*dearest = &spile_sites[i];
		}
	}
	return all;
}

static void copy_stopped_counts(int cpu, u64 *to)
{
	unsigned int i;

	for (i = 0; i < spile_script.probe_count; i++)
		to[i] = local_read(&per_cpu(spile_cpus, cpu)->counts[i].stopped);
}

/*
 * Handlers that take `needed` of each `elapsed` leave this much for everything else:
 * whether that is too little.
 */
static bool is_too_much(u64 needed, u64 elapsed)
{
	u64 interval = spile_script.overload_interval ?: 1000000000;
	u64 threshold = spile_script.overload_threshold ?: 500000000;
	u64 percent;

	if (threshold >= interval)
		return false;
	percent = div64_u64(threshold * 100, interval);
	return needed * (100 - percent) > MOST_SHARES * elapsed * percent;
}

void spile_arming_judge(void)
{
	size_t room = array_size(spile_script.probe_count, sizeof(u64));
	struct spile_site *dearest = NULL, *here = NULL;
	u64 began, elapsed, needed, most = 0;
	u64 **before;
	u32 picoseconds;
	int cpu;

	if (spile_session.armed < MANY_SITES)
		return;
	before = kcalloc(nr_cpu_ids, sizeof(*before), GFP_KERNEL);
	if (!before)
		return;
	for_each_online_cpu(cpu) {
		before[cpu] = kvmalloc(room, GFP_KERNEL);
		if (before[cpu])
			copy_stopped_counts(cpu, before[cpu]);
		cond_resched();
	}
	picoseconds = spile_budget_instruction_time();
	began = ktime_get_mono_fast_ns();
	msleep(JUDGE_MILLISECONDS);
	elapsed = ktime_get_mono_fast_ns() - began;
	for_each_possible_cpu(cpu) {
		if (!before[cpu])
			continue;
		needed = div_u64(stopped_hits_cost(cpu, before[cpu], &here) * picoseconds, 1000);
		if (needed > most) {
			most = needed;
			dearest = here;
		}
		kvfree(before[cpu]);
		cond_resched();
	}
	kfree(before);
	if (is_too_much(most, elapsed) && !spile_arming_ended())
		spile_guard_end(
			"probe overhead: the hits of %u probes were counted for %llu ms before any handler ran, and would take a CPU %llu ms; most of it probe %s",
			spile_session.armed, div_u64(elapsed, NSEC_PER_MSEC),
			div_u64(most, NSEC_PER_MSEC), dearest->probe->point);
}
