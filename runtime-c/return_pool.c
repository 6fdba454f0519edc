// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Many return probes share few kretprobes.
 *
 * Where ftrace reports the entry (kretprobe.c), a kretprobe only serves as a pool of
 * instances, each of which hooks the return of one call. It need not be at the function
 * that is called, and registering one is most of the cost of arming: 1.6 million
 * instructions (6.1), for a search of the kernel's jump labels. So each GROUP returns
 * of a target share a kretprobe. It is registered, disabled, at the first of them.
 *
 * The pool has as many instances as its members together would have, so that a function
 * whose calls sleep can use those of others; it can only exhaust the pool with as many
 * calls in flight as GROUP functions were allowed. A return with its own maxactive has
 * a kretprobe of its own, and so have the returns where there are only a FEW, for which
 * that is cheaper.
 */
#include <linux/atomic.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "attach.h"
#include "budget.h"
#include "code_end.h"
#include "context.h"
#include "features.h"
#include "return_pool.h"
#include "run.h"
#include "session.h"

enum {
	GROUP = 64,			/* members of a pool */
	FEW = 8,			/* up to this many are not worth a pool */
	/* of a member: each of the pool's instances has room for it */
	MOST_ENTRY_BYTES = 256,
};

struct spile_return_pool {
	struct kretprobe kretprobe;
	int target;
	unsigned int room;		/* for members still to come */
	unsigned int members;
};

/* The data of a pool's kretprobe_instance. */
struct pool_call {
	struct spile_site *site;	/* whose call it is */
	char entry[];			/* values saved by its entry handler */
};

/*
 * The site whose entry is being handled on this CPU and has no instance yet. Interrupts save and
 * restore it.
 */
static DEFINE_PER_CPU(struct spile_site *, entering);

static struct spile_return_pool *filling;	/* has room; or 0 */

static int handle_pool_entry(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct spile_site *site = this_cpu_read(entering);
	struct pool_call *call = (struct pool_call *)instance->data;

	if (WARN_ON_ONCE(!site))
		return 1;
	this_cpu_write(entering, NULL);
	call->site = site;
	if (!site->probe->entry_handler)
		return 0;
	return !spile_run_hit(site, SPILE_RUN_ENTERING, (unsigned long *)regs, call->entry);
}
NOKPROBE_SYMBOL(handle_pool_entry);

static int handle_pool_return(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct pool_call *call = (struct pool_call *)instance->data;

	spile_registers_of_return(instance, regs);
	spile_run_hit(call->site, SPILE_RUN_RETURNING, (unsigned long *)regs, call->entry);
	return 0;
}
NOKPROBE_SYMBOL(handle_pool_return);

void spile_return_pool_enter(struct spile_site *site, struct pt_regs *regs)
{
	struct spile_return_pool *pool = READ_ONCE(site->pool);
	struct spile_site *interrupted = this_cpu_read(entering);
	struct kprobe *kprobe;

	/* NULL: on a preemptible kernel the site has left while this hit was on its way. */
	if (!pool || !spile_return_may_be_hooked(site))
		return;
	kprobe = &pool->kretprobe.kp;
	this_cpu_write(entering, site);
	kprobe->pre_handler(kprobe, regs);
	/* The entry handler was not called: all instances are in use. */
	if (unlikely(this_cpu_read(entering)))
		atomic_long_inc(&site->unhooked);
	this_cpu_write(entering, interrupted);
}
NOKPROBE_SYMBOL(spile_return_pool_enter);

static bool may_join(const struct spile_site *site, int target)
{
	const struct spile_probe *probe = site->probe;

	if (probe->kind != SPILE_PROBE_KRETPROBE || probe->target != target || probe->maxactive)
		return false;
	/*
	 * Returns to another task's stack. register_kretprobe() refuses it by its
	 * address (kretprobe_blacklist).
	 */
	if (!strcmp(probe->function, "__switch_to"))
		return false;
	return probe->entry_bytes <= MOST_ENTRY_BYTES;
}

/* For the site and those that come after it. */
static struct spile_return_pool *make_pool(const struct spile_site *site)
{
	struct spile_return_pool *pool;
	unsigned int entry_bytes = 0, room = 0, i;
	size_t bytes;

	for (i = site->index; i < spile_script.probe_count && room < GROUP; i++) {
		if (!may_join(&spile_sites[i], site->probe->target))
			continue;
		entry_bytes = max(entry_bytes, spile_script.probes[i].entry_bytes);
		room++;
	}
	if (room <= FEW || spile_code_end_is_passed(site))
		return NULL;
	pool = kzalloc(sizeof(*pool), GFP_KERNEL);
	if (!pool)
		return NULL;
	pool->target = site->probe->target;
	pool->room = room;
	spile_attach_place(&pool->kretprobe.kp, site);
	pool->kretprobe.kp.flags = KPROBE_FLAG_DISABLED;
	pool->kretprobe.handler = handle_pool_return;
	pool->kretprobe.entry_handler = handle_pool_entry;
	pool->kretprobe.data_size = sizeof(struct pool_call) + entry_bytes;
	pool->kretprobe.maxactive = room * spile_returns_active();
	bytes = (size_t)pool->kretprobe.maxactive *
		(sizeof(struct kretprobe_instance) + pool->kretprobe.data_size);
	if (!spile_session_fits("calls in flight of .return probes (KRETACTIVE)", bytes, 0,
				num_possible_cpus()) ||
	    register_kretprobe(&pool->kretprobe)) {
		kfree(pool);
		return NULL;
	}
	return pool;
}

static void set_runs(struct spile_site *site, unsigned int runs)
{
	if (site->sampled)
		site->runs_sampled = runs;
	else
		site->runs = runs;
}

bool spile_return_pool_join(struct spile_site *site)
{
	if (!may_join(site, site->probe->target))
		return false;
	if (!filling || filling->target != site->probe->target ||
	    filling->kretprobe.data_size < sizeof(struct pool_call) + site->probe->entry_bytes)
		filling = make_pool(site);
	if (!filling)
		return false;
	site->pool = filling;
	set_runs(site, SPILE_RUNS_AT_POOLED_RETURN);
	filling->members++;
	if (!--filling->room)
		filling = NULL;
	return true;
}

void spile_return_pool_leave(struct spile_site *const *sites, unsigned int count)
{
	struct kretprobe **kretprobes = (struct kretprobe **)spile_sites_room;
	unsigned int empty = 0, i;

	for (i = 0; i < count; i++) {
		struct spile_return_pool *pool = sites[i]->pool;

		if (!pool)
			continue;
		WRITE_ONCE(sites[i]->pool, NULL);
		set_runs(sites[i], SPILE_RUNS_AT_RETURN);
		if (--pool->members)
			continue;
		if (filling == pool)
			filling = NULL;
		kretprobes[empty++] = &pool->kretprobe;
	}
	if (empty)
		unregister_kretprobes(kretprobes, empty);
	for (i = 0; i < empty; i++)
		kfree(container_of(kretprobes[i], struct spile_return_pool, kretprobe));
	for (i = 0; i < count; i++)
		sites[i]->return_missed += atomic_long_xchg(&sites[i]->unhooked, 0);
}
