/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SPILE_IRQ_WORK_H
#define SPILE_IRQ_WORK_H

#include <linux/cpumask.h>
#include <linux/irq_work.h>
#include <linux/smp.h>

/*
 * Queues it on this CPU; in a handler. False if this CPU goes offline: after it has run its
 * irq_works for the last time (smpcfd_dying_cpu()), a queued one would stay in its list, irq_work_sync()
 * would wait for it for ever, and none that is queued there later would get its interrupt.
 */
static inline bool spile_irq_work_queue(struct irq_work *work)
{
	if (unlikely(!cpu_online(raw_smp_processor_id())))
		return false;
	irq_work_queue(work);
	return true;
}

#endif
