/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SPILE_RCU_HERE_H
#define SPILE_RCU_HERE_H

#include <linux/cpumask.h>
#include <linux/rcupdate.h>
#include <linux/smp.h>

/*
 * Whether RCU keeps objects of the kernel for a handler that runs here. Not where an idle CPU
 * has told RCU that it has no readers, and is in a function that can be probed, or one that goes
 * offline.
 */
static inline bool spile_rcu_waits_for_us(void)
{
	return rcu_is_watching() && cpu_online(raw_smp_processor_id());
}

#endif
