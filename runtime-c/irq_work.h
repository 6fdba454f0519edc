/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SPILE_IRQ_WORK_H
#define SPILE_IRQ_WORK_H

#include <linux/cpumask.h>
#include <linux/irq_work.h>
#include <linux/kconfig.h>
#include <linux/smp.h>

/*
 * Whether irq_works that are queued on this CPU still run. Not if it goes offline: after it has run its
 * irq_works for the last time (smpcfd_dying_cpu()), a queued one would stay in its list, irq_work_sync()
 * would wait for it for ever, and none that is queued there later would get its interrupt.
 * PREEMPT_RT runs them in a thread, which is parked while the CPU is still online.
 */
static inline bool spile_irq_works_run(void)
{
	unsigned int cpu = raw_smp_processor_id();

	return IS_ENABLED(CONFIG_PREEMPT_RT) ? cpu_active(cpu) : cpu_online(cpu);
}

/* Queues it on this CPU; in a handler. False if it would not run. */
static inline bool spile_irq_work_queue(struct irq_work *work)
{
	if (unlikely(!spile_irq_works_run()))
		return false;
	irq_work_queue(work);
	return true;
}

#endif
