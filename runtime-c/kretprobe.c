// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Probes at a function's return: kretprobes. What the script wants from the
 * entry is saved by its entry handler in the instance, under a claim of its own;
 * where that did not run, the return of this call is not probed.
 */
#include <linux/module.h>

#include "attach.h"
#include "context.h"
#include "features.h"
#include "run.h"
#include "site.h"

enum {
	LEAST_ACTIVE = 15,	/* calls in flight that can be followed at least */
	ACTIVE_PER_CPU = 6,
};

static struct spile_site *site_of(struct kretprobe_instance *instance)
{
	return container_of(spile_get_kretprobe(instance), struct spile_site, kretprobe);
}

static int handle_entry(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct spile_site *site = site_of(instance);

	return !spile_run_hit(site, true, (unsigned long *)regs, (char *)instance->data);
}
NOKPROBE_SYMBOL(handle_entry);

static int handle_return(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct spile_site *site = site_of(instance);

	spile_run_hit(site, false, (unsigned long *)regs, (char *)instance->data);
	return 0;
}
NOKPROBE_SYMBOL(handle_return);

static int arm_return(struct spile_site *site)
{
	const struct spile_probe *probe = site->probe;
	struct kretprobe *kretprobe = &site->kretprobe;
	unsigned int most = probe->maxactive;

	if (!most)
		most = spile_script.active_returns;
	if (!most)
		most = max_t(unsigned int, LEAST_ACTIVE, ACTIVE_PER_CPU * num_possible_cpus());
	memset(kretprobe, 0, sizeof(*kretprobe));
	spile_attach_place(&kretprobe->kp, site);
	kretprobe->handler = handle_return;
	kretprobe->entry_handler = probe->entry_handler ? handle_entry : NULL;
	kretprobe->data_size = probe->entry_bytes;
	kretprobe->maxactive = most;
	return register_kretprobe(kretprobe);
}

static void disarm_returns(struct spile_site *const *sites, unsigned int count)
{
	enum { AT_ONCE = 64 };
	struct kretprobe *kretprobes[AT_ONCE];
	unsigned int done, i;

	for (done = 0; done < count; done += i) {
		for (i = 0; i < AT_ONCE && done + i < count; i++)
			kretprobes[i] = &sites[done + i]->kretprobe;
		unregister_kretprobes(kretprobes, i);
	}
	for (i = 0; i < count; i++) {
		sites[i]->missed += sites[i]->kretprobe.kp.nmissed;
		sites[i]->return_missed += sites[i]->kretprobe.nmissed;
	}
}

static void count_missed_returns(const struct spile_site *site, struct spile_counters *counters)
{
	counters->nested += site->kretprobe.kp.nmissed;
	counters->return_misses += site->kretprobe.nmissed;
}

const struct spile_family spile_kretprobe_family = {
	.by = SPILE_BY_KRETPROBE,
	.arm = arm_return,
	.disarm = disarm_returns,
	.missed = count_missed_returns,
};
