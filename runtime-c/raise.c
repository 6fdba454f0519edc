// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * raise(): a signal to the current process. Sending takes locks that may be held where a handler
 * runs. They are only held with interrupts off, so an interrupt, which comes as soon as they are
 * on, can send it.
 *
 * If a hit in that interrupt, after the signal was sent, requested the next one, the CPU would never
 * leave them. So signals from interrupts have a distance.
 */
#include <linux/hardirq.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/timekeeping.h>

#include "builtins.h"
#include "context.h"
#include "gate.h"
#include "guard.h"
#include "raise.h"

#define INTERRUPT_DISTANCE_NS	(500 * NSEC_PER_USEC)

/* Runs in a hard interrupt. */
static void send(struct irq_work *work)
{
	struct spile_raised *one = container_of(work, struct spile_raised, work);
	struct pid *process = one->process;

	if (!process)
		return;
	kill_pid(process, one->signal, 1);
	one->sent = ktime_get_mono_fast_ns();
	one->process = NULL;
	put_pid(process);
}

static bool is_too_soon(const struct spile_raised *one)
{
	return hardirq_count() && ktime_get_mono_fast_ns() - one->sent < INTERRUPT_DISTANCE_NS;
}

void spile_fn_raise(struct spile_context *c, spile_long signal)
{
	struct spile_raised *one = &spile_cpu_of(c)->raised;

	if (signal < 1 || signal > _NSIG) {
		spile_fail_text(c, "there is no signal %lld", signal);
		return;
	}
	if (!current->mm || one->process || is_too_soon(one)) {
		spile_fail_text(c, "signal %lld cannot be sent now", signal);
		return;
	}
	if (!spile_gate_passes(c, SPILE_GATE_SIGNAL, task_tgid_nr(current), 0, signal))
		return;
	one->signal = signal;
	one->process = get_pid(task_tgid(current));
	/* A CPU that goes offline runs no process: current->mm. */
	irq_work_queue(&one->work);
}

void spile_raise_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		init_irq_work(&per_cpu(spile_cpus, cpu)->raised.work, send);
}

void spile_raise_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		irq_work_sync(&per_cpu(spile_cpus, cpu)->raised.work);
}
