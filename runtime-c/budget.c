// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Estimates the cost of a script before it runs, and samples hits if it is too high.
 *
 * Before the session runs, hits are counted as stopped and do nothing else (run.h), so
 * arming everything shows how often each probe would run. The cost of one hit is the
 * compiler's estimate in instructions (spile_probe.cost); a loop of known length
 * measures how long an instruction takes on this machine.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/sched/signal.h>
#include <linux/string.h>
#include <linux/timekeeping.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "arming.h"
#include "budget.h"
#include "context.h"
#include "family.h"
#include "features.h"
#include "module_notifier.h"
#include "run.h"
#include "session.h"
#include "site.h"

enum {
	MOST_MILLISECONDS = 60000,
	LOOK_MILLISECONDS = 20,		/* interval of checks for the end of the session */
	HELD_MILLISECONDS = 1000,	/* until disarming is tried again */
	PATIENCE_MILLISECONDS = 200,	/* for the work item that has been told to end */
	REFERENCE_TURNS = 256,
	REFERENCE_INSTRUCTIONS = 1920,	/* of a turn (6.1, counted by qemu -icount) */
	REFERENCE_PASSES = 5,		/* the fastest counts: others were interrupted */
};

static u32 one_in = 1;
static bool measured;

u32 spile_budget_instruction_time(void)
{
	u64 least = U64_MAX, began;
	unsigned int pass, i;
	char text[64];

	for (pass = 0; pass < REFERENCE_PASSES; pass++) {
		began = ktime_get_mono_fast_ns();
		for (i = 0; i < REFERENCE_TURNS; i++)
			snprintf(text, sizeof(text), "%d %s %x %d %s\n", 100000 + i, "reference",
				 1000000 + i, -200000, "work");
		least = min(least, ktime_get_mono_fast_ns() - began);
	}
	return clamp_t(u64, div_u64(least * 1000, REFERENCE_TURNS * REFERENCE_INSTRUCTIONS), 1,
		       U32_MAX);
}

/*
 * Sleeps without spile_session.lock, so that other tasks can query or stop the session and load
 * modules. Returns the time slept in ns.
 */
static u64 wait_for_hits(unsigned int milliseconds)
{
	u64 began = ktime_get_mono_fast_ns();
	u64 end = began + (u64)milliseconds * NSEC_PER_MSEC, now;

	for (now = began; now < end && !spile_arming_ended(); now = ktime_get_mono_fast_ns())
		msleep(min_t(u64, div_u64(end - now + NSEC_PER_MSEC - 1, NSEC_PER_MSEC),
			     LOOK_MILLISECONDS));
	return now - began;
}

static struct {
	unsigned int milliseconds;
	u64 nanoseconds;
	bool ended;		/* before the time was over */
} measurement;
static DECLARE_WAIT_QUEUE_HEAD(measuring_is_over);

/* Arms everything, so that hits are counted, and disarms it. */
static void measure_all(struct work_struct *work)
{
	mutex_lock(&spile_session.lock);
	if (!spile_arming_ended())
		spile_sites_arm(SPILE_ALL_TARGETS);
	/* Hits while others were being armed do not count: the time starts now. */
	measured = true;
	spile_budget_forget();
	measured = true;
	mutex_unlock(&spile_session.lock);
	measurement.nanoseconds = wait_for_hits(measurement.milliseconds);
	mutex_lock(&spile_session.lock);
	measurement.ended = spile_arming_ended();
	while (spile_sites_disarm(SPILE_ALL_TARGETS)) {
		mutex_unlock(&spile_session.lock);
		msleep(HELD_MILLISECONDS);
		mutex_lock(&spile_session.lock);
	}
	spile_context_wait();
	WRITE_ONCE(spile_session.at_work, false);
	/* Release: the results above; pairs with the acquire in measuring_goes_on(). */
	smp_store_release(&spile_session.measuring, false);
	mutex_unlock(&spile_session.lock);
	wake_up_all(&measuring_is_over);
}

static DECLARE_WORK(measuring, measure_all);

void spile_budget_exit(void)
{
	cancel_work_sync(&measuring);
}

static void enter_measuring(void *argument)
{
	int *error = argument;

	mutex_lock(&spile_session.lock);
	if (spile_session_state != SPILE_STATE_READY || spile_session.measuring)
		*error = -EBUSY;
	else
		*error = spile_modules_check();
	if (!*error)
		WRITE_ONCE(spile_session.measuring, true);
	mutex_unlock(&spile_session.lock);
}

static bool measuring_goes_on(void)
{
	/* Acquire: pairs with the release in measure_all(). */
	return smp_load_acquire(&spile_session.measuring);
}

/* Under spile_session.calls. */
static int begin_measuring(unsigned int milliseconds)
{
	int error = 0;

	/* It has the lock as long as it arms, and who wants to end it needs `calls`. */
	if (READ_ONCE(spile_session_state) != SPILE_STATE_READY || measuring_goes_on())
		return -EBUSY;
	spile_session_in_worker(enter_measuring, &error);
	if (error)
		return error;
	measurement.milliseconds = milliseconds;
	spile_sites_prepare();
	WRITE_ONCE(spile_session.at_work, true);
	queue_work(spile_unbound_queue(), &measuring);
	return 0;
}

/* If it is to end early, a step of the kernel that takes long is not waited for. */
static int wait_for_measurement(void)
{
	while (measuring_goes_on() && !spile_arming_ended()) {
		wait_event_interruptible_timeout(measuring_is_over, !measuring_goes_on(),
						 msecs_to_jiffies(LOOK_MILLISECONDS));
		if (signal_pending(current))
			spile_arming_cancel();
	}
	wait_event_timeout(measuring_is_over, !measuring_goes_on(),
			   msecs_to_jiffies(PATIENCE_MILLISECONDS));
	return measuring_goes_on() || measurement.ended ? -EINTR : 0;
}

int spile_budget_measure(struct spile_measure *measure)
{
	int error;

	if (!measure->milliseconds || measure->milliseconds > MOST_MILLISECONDS)
		return -EINVAL;
	mutex_lock(&spile_session.calls);
	error = begin_measuring(measure->milliseconds);
	mutex_unlock(&spile_session.calls);
	error = error ?: wait_for_measurement();
	if (error)
		return error;
	measure->nanoseconds = measurement.nanoseconds;
	measure->cpus = num_online_cpus();
	measure->picoseconds = spile_budget_instruction_time();
	return 0;
}

int spile_budget_sample(const struct spile_sampling *sample)
{
	unsigned int i;

	if (spile_session_state != SPILE_STATE_READY || spile_session.measuring)
		return -EBUSY;
	if (!sample->one_in || sample->reserved)
		return -EINVAL;
	one_in = sample->one_in;
	for (i = 0; i < spile_script.probe_count; i++) {
		struct spile_site *site = &spile_sites[i];

		/* Timers, files and the verdicts over packets need every hit. */
		if (site->sampled || !site->family || !site->family->may_be_sampled)
			continue;
		site->sampled = true;
		site->runs_sampled = site->runs;
		site->runs = SPILE_RUNS_SAMPLED;
	}
	return 0;
}

void spile_budget_forget(void)
{
	unsigned int i;
	int cpu;

	if (!measured)
		return;
	measured = false;
	for_each_possible_cpu(cpu)
		memset(per_cpu(spile_cpus, cpu)->counts, 0,
		       spile_script.probe_count * sizeof(struct spile_counts));
	for (i = 0; i < spile_script.probe_count; i++) {
		spile_sites[i].missed = 0;
		spile_sites[i].return_missed = 0;
	}
}

bool spile_budget_skips(const struct spile_site *site)
{
	struct spile_counts *counts = spile_counts_of(spile_this_cpu(), site);
	u32 left;

	/* Otherwise the hit is counted as stopped, where the handler would run. */
	if (READ_ONCE(spile_session_state) != SPILE_STATE_RUNNING)
		return false;
	if (unlikely(READ_ONCE(site->switched_off))) {
		local_inc(&counts->stopped);
		return true;
	}
	/* An interrupt between the two may use the same value; the totals stay exact. */
	left = READ_ONCE(counts->left);
	WRITE_ONCE(counts->left, left ? left - 1 : one_in - 1);
	if (!left)
		return false;
	local_inc(&counts->sampled);
	return true;
}

void spile_run_sampled(struct spile_site *site, unsigned long *regs)
{
	if (spile_budget_skips(site))
		return;
	switch (site->runs_sampled) {
	case SPILE_RUNS_ADDING:
		spile_run_adding(site);
		break;
	case SPILE_RUNS_COUNTING:
		spile_run_counting(site);
		break;
	case SPILE_RUNS_COUNTING_BY:
		spile_run_counting_by(site, regs);
		break;
	case SPILE_RUNS_AT_RETURN:
		spile_kretprobe_enter(site, (struct pt_regs *)regs);
		break;
	case SPILE_RUNS_AT_POOLED_RETURN:
		spile_return_pool_enter(site, (struct pt_regs *)regs);
		break;
	case SPILE_RUNS_SIMPLE:
		spile_run_simple(site, regs);
		break;
	default:
		spile_run_whole(site, regs);
		break;
	}
}
