// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Probes at a function's return: kretprobes. Values that the script needs from the
 * entry are saved in the instance by its entry handler, which claims the context
 * separately; if that did not run, the return of this call is not probed.
 *
 * A kretprobe is a kprobe at the entry whose handler hooks the return. ftrace reports
 * an entry at a fifth of the cost of a kprobe on ftrace (measured), so where entry.c
 * can serve the site the kprobe stays disabled and its handler is called from there, as
 * fprobe does.
 */
#include <linux/atomic.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/overflow.h>

#include "attach.h"
#include "budget.h"
#include "code_end.h"
#include "context.h"
#include "entry.h"
#include "family.h"
#include "features.h"
#include "replaced_return.h"
#include "return_pool.h"
#include "run.h"
#include "session.h"
#include "site.h"

enum {
	LEAST_ACTIVE = 15,	/* calls in flight that can be followed at least */
	ACTIVE_PER_CPU = 6,
	SPILE_RETURN_EXTRA = sizeof(void *),	/* of an instance in a pool: return_pool.c */
	SPILE_RETURN_LOOK = 256 << 10,	/* bytes: for less, free memory is not checked again */
};

static struct spile_site *site_of(struct kretprobe_instance *instance)
{
	return container_of(spile_get_kretprobe(instance), struct spile_site, kretprobe);
}

/* Runs the entry handler with the call's own return address in its place. */
static __always_inline int enter(struct kretprobe_instance *instance, unsigned int kind,
				 struct pt_regs *regs)
{
	unsigned long replaced = spile_return_restore(regs);
	bool fine = spile_run_hit(site_of(instance), kind, (unsigned long *)regs,
				  (char *)instance->data);

	spile_return_replace(regs, replaced);
	return !fine;
}

/* Of a site without an entry handler: others may follow at this entry. */
static int handle_no_entry(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	spile_return_replace(regs, spile_return_restore(regs));
	return 0;
}
NOKPROBE_SYMBOL(handle_no_entry);

static int handle_entry(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	return enter(instance, SPILE_RUN_ENTERING, regs);
}
NOKPROBE_SYMBOL(handle_entry);

static int handle_simple_entry(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	return enter(instance, SPILE_RUN_ENTERING | SPILE_RUN_SIMPLE, regs);
}
NOKPROBE_SYMBOL(handle_simple_entry);

/* Of a probe that is sampled, whether or not it has something to save. */
static int handle_sampled_entry(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct spile_site *site = site_of(instance);

	/* If ftrace reported the entry, this was decided there. */
	if (!site->by_entry && spile_budget_skips(site))
		return 1;
	return site->probe->entry_handler ? handle_entry(instance, regs) :
					    handle_no_entry(instance, regs);
}
NOKPROBE_SYMBOL(handle_sampled_entry);

static int handle_return(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct spile_site *site = site_of(instance);

	spile_return_handled();
	spile_registers_of_return(instance, regs);
	spile_run_hit(site, SPILE_RUN_RETURNING, (unsigned long *)regs, (char *)instance->data);
	return 0;
}
NOKPROBE_SYMBOL(handle_return);

static int handle_simple_return(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct spile_site *site = site_of(instance);

	spile_return_handled();
	spile_registers_of_return(instance, regs);
	spile_run_hit(site, SPILE_RUN_RETURNING | SPILE_RUN_SIMPLE, (unsigned long *)regs,
		      (char *)instance->data);
	return 0;
}
NOKPROBE_SYMBOL(handle_simple_return);

unsigned int spile_returns_active(void)
{
	if (spile_script.active_returns)
		return spile_script.active_returns;
	return max_t(unsigned int, LEAST_ACTIVE, ACTIVE_PER_CPU * num_possible_cpus());
}

size_t spile_return_bytes(const struct spile_probe *probe)
{
	size_t active = probe->maxactive ? probe->maxactive : spile_returns_active();

	/* Each instance is an allocation of its own, which the kernel rounds up. */
	return active * roundup_pow_of_two(sizeof(struct kretprobe_instance) + SPILE_RETURN_EXTRA +
					   probe->entry_bytes);
}

/*
 * Reserves memory for the instances of all returns: -ENOMEM and a line in the kernel's log
 * if there is not enough. It counts as taken from here on, because the kernel, which
 * allocates it when a probe is armed, charges it to no cgroup.
 */
static int reserve_memory(void)
{
	size_t bytes = 0;
	unsigned int i;

	for (i = 0; i < spile_script.probe_count; i++)
		if (spile_script.probes[i].kind == SPILE_PROBE_KRETPROBE &&
		    check_add_overflow(bytes, spile_return_bytes(&spile_script.probes[i]), &bytes))
			bytes = SIZE_MAX;
	if (spile_session_affords("calls in flight of .return probes (maxactive, KRETACTIVE)",
				  bytes, 0, num_possible_cpus())) {
		spile_session_charge(bytes);
		return 0;
	}
	return -ENOMEM;
}

/* `flags` are those of its kprobe. */
static int register_own(struct spile_site *site, unsigned int flags)
{
	const struct spile_probe *probe = site->probe;
	struct kretprobe *kretprobe = &site->kretprobe;
	int error;

	/* Memory may have been used up since the module was loaded. */
	if (spile_return_bytes(probe) > SPILE_RETURN_LOOK &&
	    !spile_session_fits("calls in flight of a .return probe (maxactive, KRETACTIVE)",
				spile_return_bytes(probe), 0, num_possible_cpus()))
		return -ENOMEM;
	memset(kretprobe, 0, sizeof(*kretprobe));
	spile_attach_place(&kretprobe->kp, site);
	/* The site's kprobe is the kretprobe's. */
	BUILD_BUG_ON(offsetof(struct kretprobe, kp) != 0);
	kretprobe->handler = probe->simple ? handle_simple_return : handle_return;
	if (site->sampled)
		kretprobe->entry_handler = handle_sampled_entry;
	else if (probe->entry_handler)
		kretprobe->entry_handler = probe->entry_simple ? handle_simple_entry : handle_entry;
	else if (!IS_ENABLED(CONFIG_KRETPROBE_ON_RETHOOK))
		kretprobe->entry_handler = handle_no_entry;
	kretprobe->data_size = probe->entry_bytes;
	kretprobe->maxactive = probe->maxactive ? probe->maxactive : spile_returns_active();
	kretprobe->kp.flags = flags;
	error = spile_code_end_check(site) ?: register_kretprobe(kretprobe);
	/* It has cleared what this sets. */
	spile_kprobe_count_faults(site);
	site->registered = !error;
	return error;
}

int spile_return_register_own(struct spile_site *site)
{
	spile_return_pool_leave(&site, 1);
	return register_own(site, 0);
}

static bool arm_return_by_ftrace(struct spile_site *site)
{
	spile_attach_place(&site->kretprobe.kp, site);
	site->registered = false;
	if (!spile_entry_is_plain(site) || !spile_return_pool_join(site))
		return false;
	if (spile_entry_add(site))
		return true;
	spile_return_pool_leave(&site, 1);
	return false;
}

static int arm_return(struct spile_site *site)
{
	int error;

	spile_attach_place(&site->kretprobe.kp, site);
	site->registered = false;
	error = register_own(site, KPROBE_FLAG_DISABLED);
	if (!error)
		spile_kprobe_serve(site);
	return error;
}

void spile_kretprobe_enter(struct spile_site *site, struct pt_regs *regs)
{
	struct kprobe *kprobe = &site->kretprobe.kp;

	if (!spile_return_may_be_hooked(site))
		return;
	/* It has left while this hit was on its way: spile_kprobe_turn(). */
	if (unlikely(!READ_ONCE(site->by_entry)))
		return;
	kprobe->pre_handler(kprobe, regs);
}
NOKPROBE_SYMBOL(spile_kretprobe_enter);

static void disarm_returns(struct spile_site *const *sites, unsigned int count)
{
	enum { AT_ONCE = 256 };
	struct kretprobe **kretprobes = (struct kretprobe **)spile_sites_room;
	unsigned int registered = 0, i;

	spile_entry_remove(sites, count);
	spile_return_pool_leave(sites, count);
	for (i = 0; i < count; i++)
		if (sites[i]->registered)
			kretprobes[registered++] = &sites[i]->kretprobe;
	for (i = 0; i < registered; i += AT_ONCE) {
		unsigned int some = min_t(unsigned int, registered - i, AT_ONCE);

		unregister_kretprobes(kretprobes + i, some);
		spile_sites_disarmed(some);
		cond_resched();
	}
	for (i = 0; i < count; i++) {
		if (!sites[i]->registered) {
			sites[i]->by_entry = false;
			continue;
		}
		sites[i]->return_missed += atomic_long_xchg(&sites[i]->unhooked, 0);
		sites[i]->missed += spile_kprobe_missed(sites[i]);
		sites[i]->return_missed += sites[i]->kretprobe.nmissed;
		sites[i]->by_entry = false;
		sites[i]->registered = false;
	}
}

static void count_missed_returns(const struct spile_site *site, struct spile_counters *counters)
{
	counters->return_misses += atomic_long_read(&site->unhooked);
	if (!site->registered)
		return;
	counters->nested += spile_kprobe_missed(site);
	counters->return_misses += site->kretprobe.nmissed;
}

static u32 return_mechanism(const struct spile_site *site)
{
	return site->by_entry ? SPILE_BY_FTRACE_RETURN : SPILE_BY_KRETPROBE;
}

const struct spile_family spile_kretprobe_family = {
	.kind = SPILE_PROBE_KRETPROBE,
	.with = &spile_kprobe_family,
	.type = "kretprobe",
	.runs = SPILE_RUNS_AT_RETURN,
	.may_be_sampled = true,
	.init = reserve_memory,
	.mechanism = return_mechanism,
	.arm_cheaply = arm_return_by_ftrace,
	.measure_enabling = spile_kprobe_enabling_time,
	.arm = arm_return,
	.disarm = disarm_returns,
	.turn = spile_kprobe_turn,
	.missed = count_missed_returns,
};
