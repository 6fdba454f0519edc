// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Probes at an address: kprobes. At a function's entry the kernel puts them on
 * ftrace, elsewhere it turns them into jumps where it can.
 */
#include <linux/irqflags.h>
#include <linux/module.h>

#include "attach.h"
#include "context.h"
#include "site.h"

/*
 * Preemption is off. Interrupts may be on (ftrace, jump): they wait, because what
 * an interrupt hits while a handler runs would be lost as nested (measured: one
 * in five ticks of a timer probe under a load of prints), and because the locks
 * of the handler would be held for longer.
 */
static int handle_hit(struct kprobe *kprobe, struct pt_regs *regs)
{
	struct spile_site *site = container_of(kprobe, struct spile_site, kprobe);
	unsigned long flags;

	raw_local_irq_save(flags);
	spile_context_run(site, SPILE_STATE_RUNNING, site->probe->handler,
			  (unsigned long *)regs, NULL);
	raw_local_irq_restore(flags);
	return 0;
}
NOKPROBE_SYMBOL(handle_hit);

static int arm_kprobe_site(struct spile_site *site)
{
	spile_attach_place(&site->kprobe, site);
	site->kprobe.pre_handler = handle_hit;
	return register_kprobe(&site->kprobe);
}

static void disarm_kprobe_sites(struct spile_site *const *sites, unsigned int count)
{
	enum { AT_ONCE = 64 };
	struct kprobe *kprobes[AT_ONCE];
	unsigned int done, i;

	/* One wait for all CPUs serves a whole group. */
	for (done = 0; done < count; done += i) {
		for (i = 0; i < AT_ONCE && done + i < count; i++)
			kprobes[i] = &sites[done + i]->kprobe;
		unregister_kprobes(kprobes, i);
	}
	for (i = 0; i < count; i++)
		sites[i]->missed += sites[i]->kprobe.nmissed;
}

static void count_missed_hits(const struct spile_site *site, struct spile_counters *counters)
{
	counters->nested += site->kprobe.nmissed;
}

const struct spile_family spile_kprobe_family = {
	.arm = arm_kprobe_site,
	.disarm = disarm_kprobe_sites,
	.missed = count_missed_hits,
};
