// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Counters of programs, for @perf: an event of perf for each thread. A thread gets it where its
 * program begins, by a breakpoint at the program's entry point; threads that run already, when the
 * counter is armed; and threads that the program makes, before the handler of their first hit in a
 * program. In all three places the task, or the one that arms, may sleep. The handler of the probe
 * itself never runs.
 */
#include <linux/err.h>
#include <linux/cred.h>
#include <linux/hash.h>
#include <linux/irqflags.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/perf_event.h>
#include <linux/rculist.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/semaphore.h>
#include <linux/slab.h>
#include <linux/uprobes.h>
#include <linux/workqueue.h>

#include "arming.h"
#include "builtins.h"
#include "context.h"
#include "family.h"
#include "features.h"
#include "held_maps.h"
#include "owner.h"
#include "session.h"
#include "site.h"
#include "uprobe.h"

enum {
	COUNTED_BITS = 6,
	/*
	 * Threads that one site counts. Any user may run the program, so some of them are for
	 * root and the session's owner, and one other user cannot have all of the rest.
	 */
	MOST_COUNTED = 4096,
	MOST_COUNTED_OTHERS = MOST_COUNTED / 4 * 3,
	MOST_COUNTED_USER = MOST_COUNTED / 2,
	SOME_GONE = 64,		/* forgotten threads whose events are released at once */
};

/* A thread with its event. Handlers look it up, so it is freed after a grace period. */
struct counted {
	struct hlist_node node;
	struct rcu_head rcu;
	struct task_struct *task;	/* with a reference */
	kuid_t user;			/* who ran the program */
	struct perf_event *event;
	struct spile_site *site;
	struct list_head gone;		/* it is forgotten, and the event not yet released */
};

/* The threads of all sites: they change when programs begin. */
static struct semaphore counted_lock = __SEMAPHORE_INITIALIZER(counted_lock, 1);
/* All sites, by program_counter.next; until the module is unloaded. */
static struct spile_site *first_counter;

static struct hlist_head *counted_head(struct hlist_head *heads, const struct task_struct *task)
{
	return &heads[hash_ptr(task, COUNTED_BITS)];
}

/* Under counted_lock, or where it cannot be freed: with interrupts off. */
static struct counted *find_counted(struct hlist_head *heads, const struct task_struct *task)
{
	struct counted *counted;

	hlist_for_each_entry_rcu(counted, counted_head(heads, task), node, true)
		if (counted->task == task)
			return counted;
	return NULL;
}

/*
 * Releasing an event may wait for other CPUs, and for handlers: not in the handler where a program
 * begins. The last event of a kind switches code of perf off that the next one switches on again,
 * which interrupts all CPUs. So each site keeps one while it has no other.
 */
static void release_gone(struct work_struct *unused);
static DECLARE_DELAYED_WORK(releasing, release_gone);
static LIST_HEAD(all_gone);	/* under counted_lock, as spile_site.program_counter.gone */

static void release_counted(struct counted *counted)
{
	/* perf frees it after a grace period. */
	perf_event_release_kernel(counted->event);
	kfree_rcu(counted, rcu);
}

static void release_gone(struct work_struct *unused)
{
	struct counted *counted, *next;
	LIST_HEAD(some);

	down(&counted_lock);
	list_for_each_entry_safe(counted, next, &all_gone, gone) {
		struct spile_site *site = counted->site;

		if (!site->program_counter.count && site->program_counter.gone == 1)
			continue;
		site->program_counter.gone--;
		list_move(&counted->gone, &some);
	}
	up(&counted_lock);
	list_for_each_entry_safe(counted, next, &some, gone) {
		release_counted(counted);
		cond_resched();
	}
}

static void forget_counted(struct spile_site *site, struct counted *counted)
{
	hlist_del_rcu(&counted->node);
	/*
	 * It would take a counter of the hardware from the next one until it is released. This
	 * thread's own is disabled without waiting for another CPU.
	 */
	if (counted->task == current)
		perf_event_disable(counted->event);
	put_task_struct(counted->task);
	site->program_counter.count--;
	list_add_tail(&counted->gone, &all_gone);
	if (++site->program_counter.gone >= SOME_GONE)
		mod_delayed_work(spile_unbound_queue(), &releasing, 0);
	else
		queue_delayed_work(spile_unbound_queue(), &releasing, HZ);
}

/* Whether the site may count another thread of the user, after those that are dead are forgotten. */
static bool may_count_more(struct spile_site *site, kuid_t user)
{
	unsigned int others = 0, own = 0, i;
	struct hlist_node *next;
	struct counted *counted;

	for (i = 0; i < 1 << COUNTED_BITS; i++)
		hlist_for_each_entry_safe(counted, next, &site->program_counter.heads[i], node) {
			if (READ_ONCE(counted->task->exit_state)) {
				forget_counted(site, counted);
				continue;
			}
			others += !spile_owner_prefers(counted->user);
			own += uid_eq(counted->user, user);
		}
	if (site->program_counter.count >= MOST_COUNTED ||
	    site->program_counter.gone >= MOST_COUNTED)
		return false;
	return spile_owner_prefers(user) ||
	       (others < MOST_COUNTED_OTHERS && own < MOST_COUNTED_USER);
}

static int add_counted(struct spile_site *site, struct task_struct *task)
{
	const struct spile_program_counter *wanted = &site->probe->program_counter;
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = wanted->type,
		.config = wanted->config,
	};
	struct counted *counted;

	if (!may_count_more(site, task_uid(task)))
		return -EUSERS;
	counted = kzalloc(sizeof(*counted), GFP_KERNEL);
	if (!counted)
		return -ENOMEM;
	counted->event = perf_event_create_kernel_counter(&attr, -1, task, NULL, NULL);
	if (IS_ERR(counted->event)) {
		int error = PTR_ERR(counted->event);

		kfree(counted);
		return error;
	}
	counted->task = get_task_struct(task);
	counted->user = task_uid(task);
	counted->site = site;
	hlist_add_head_rcu(&counted->node, counted_head(site->program_counter.heads, task));
	site->program_counter.count++;
	return 0;
}

static void report_uncounted(struct spile_site *site, struct task_struct *task, int error)
{
	if (error == -ESRCH || site->program_counter.reported || fatal_signal_pending(current))
		return;
	site->program_counter.reported = true;
	if (error == -EUSERS)
		spile_session_emit(
			SPILE_RECORD_WARN,
			"probe %s does not count process %d, nor others that begin now: it counts %u threads, of %d that it can count, of which a user other than root and its own has %d at most; @perf is 0 there",
			site->probe->point, task_tgid_nr(task), site->program_counter.count,
			MOST_COUNTED, MOST_COUNTED_USER);
	else
		spile_session_emit(
			SPILE_RECORD_WARN,
			"probe %s cannot count process %d (rc %d)%s; @perf is 0 there",
			site->probe->point, task_tgid_nr(task), error,
			error == -ENOENT || error == -EOPNOTSUPP || error == -ENODEV ?
				": this machine has no such event" : "");
}

/* Under counted_lock. */
static void count_task(struct spile_site *site, struct task_struct *task)
{
	int error = add_counted(site, task);

	if (error)
		report_uncounted(site, task, error);
}

/* Where the program begins; in its process. What the thread ran before is not counted. */
static int handle_counted_start(struct uprobe_consumer *self, struct pt_regs *regs
				SPILE_UPROBE_DATA)
{
	struct spile_site *site = container_of(self, struct spile_site, program_counter.consumer);
	struct counted *counted;

	if (!spile_follows_current(site->probe->program_counter.pid))
		return 0;
	if (!spile_uprobe_lock(&counted_lock)) {
		report_uncounted(site, current, -EBUSY);
		return 0;
	}
	counted = find_counted(site->program_counter.heads, current);
	if (counted)
		forget_counted(site, counted);
	count_task(site, current);
	up(&counted_lock);
	return 0;
}

/* The task is meant and runs the program. For another one than the current task under its lock. */
static bool is_to_count(const struct spile_site *site, struct task_struct *task)
{
	const struct spile_program_counter *wanted = &site->probe->program_counter;

	return task->mm && spile_follows_task(wanted->pid, task) &&
	       spile_program_of_mm(wanted->program, task->mm);
}

/* Hits of a user that could not be counted do not try again for a second; others are not concerned. */
static bool is_refused_now(const struct spile_site *site)
{
	return time_before(jiffies, READ_ONCE(site->program_counter.refused_until)) &&
	       uid_eq(READ_ONCE(site->program_counter.refused), current_uid());
}

static void refuse_for_now(struct spile_site *site)
{
	WRITE_ONCE(site->program_counter.refused, current_uid());
	WRITE_ONCE(site->program_counter.refused_until, jiffies + HZ);
}

void spile_program_counters_begin(void)
{
	/* Acquire: pairs with the release in arm_program_counter(). */
	struct spile_site *site = smp_load_acquire(&first_counter);

	for (; site; site = site->program_counter.next) {
		bool known;

		rcu_read_lock();
		known = find_counted(site->program_counter.heads, current);
		rcu_read_unlock();
		if (known || is_refused_now(site) || !is_to_count(site, current))
			continue;
		if (!spile_uprobe_lock(&counted_lock)) {
			refuse_for_now(site);
			continue;
		}
		count_task(site, current);
		if (!find_counted(site->program_counter.heads, current))
			refuse_for_now(site);
		up(&counted_lock);
	}
}

/* Threads that run the program already, each with a reference: MOST_COUNTED at most. */
static unsigned int find_uncounted(struct spile_site *site, struct task_struct **found)
{
	struct task_struct *process, *thread;
	unsigned int count = 0;

	rcu_read_lock();
	for_each_process_thread(process, thread) {
		bool meant;

		if (count == MOST_COUNTED || thread->flags & (PF_EXITING | PF_KTHREAD))
			continue;
		task_lock(thread);
		meant = is_to_count(site, thread);
		task_unlock(thread);
		if (meant && !find_counted(site->program_counter.heads, thread))
			found[count++] = get_task_struct(thread);
	}
	rcu_read_unlock();
	return count;
}

static int count_running(struct spile_site *site)
{
	struct task_struct **found = kvcalloc(MOST_COUNTED, sizeof(*found), GFP_KERNEL);
	unsigned int count, i;

	if (!found)
		return -ENOMEM;
	count = find_uncounted(site, found);
	for (i = 0; i < count && !spile_arming_ended(); i++) {
		if (!spile_uprobe_lock(&counted_lock)) {
			report_uncounted(site, found[i], -EBUSY);
			break;
		}
		if (!find_counted(site->program_counter.heads, found[i]))
			count_task(site, found[i]);
		up(&counted_lock);
	}
	for (i = 0; i < count; i++)
		put_task_struct(found[i]);
	kvfree(found);
	return 0;
}

static void remove_counted_start(struct spile_site *site)
{
	spile_uprobe_remove(site->program_counter.inode, site->probe->program_counter.entry_offset,
			    &site->program_counter.consumer, site->program_counter.handle);
}

static int arm_program_counter(struct spile_site *site)
{
	const struct spile_program_counter *wanted = &site->probe->program_counter;
	struct inode *inode = spile_program_inode(wanted->program);
	int error;

	/*
	 * Their events wait for all handlers when they go, and take locks under which others add
	 * uprobes: not in a handler.
	 */
	if (wanted->type == PERF_TYPE_TRACEPOINT)
		return -EOPNOTSUPP;
	if (IS_ERR(inode))
		return PTR_ERR(inode);
	if (spile_maps_are_held(inode))
		return -EBUSY;
	/* Once: it is read until the module is unloaded. */
	if (!site->program_counter.heads) {
		memset(&site->program_counter, 0, sizeof(site->program_counter));
		site->program_counter.heads =
			kcalloc(1 << COUNTED_BITS, sizeof(struct hlist_head), GFP_KERNEL);
		if (!site->program_counter.heads)
			return -ENOMEM;
		site->program_counter.next = first_counter;
		/* Release: it is complete before handlers see it. */
		smp_store_release(&first_counter, site);
	}
	site->program_counter.inode = inode;
	site->program_counter.consumer.handler = handle_counted_start;
	error = spile_uprobe_add(inode, wanted->entry_offset, 0, &site->program_counter.consumer,
				 &site->program_counter.handle);
	if (error)
		return error;
	error = count_running(site);
	if (error) {
		remove_counted_start(site);
		spile_uprobe_wait();
	}
	return error;
}

static bool detach_program_counter(struct spile_site *site)
{
	if (spile_maps_delay(site->program_counter.inode, site->probe->point))
		return false;
	remove_counted_start(site);
	return true;
}

/* The events stay: other probes may still read them. */
static void disarm_program_counters(struct spile_site *const *sites, unsigned int count)
{
	spile_uprobe_wait();
}

static void release_program_counters(void)
{
	struct counted *counted, *other;
	struct spile_site *site;
	unsigned int i;

	down(&counted_lock);
	for (site = first_counter; site; site = site->program_counter.next) {
		struct hlist_node *next;

		for (i = 0; i < 1 << COUNTED_BITS; i++)
			hlist_for_each_entry_safe(counted, next, &site->program_counter.heads[i],
						  node)
				forget_counted(site, counted);
		kfree(site->program_counter.heads);
		site->program_counter.heads = NULL;
	}
	first_counter = NULL;
	up(&counted_lock);
	cancel_delayed_work_sync(&releasing);
	list_for_each_entry_safe(counted, other, &all_gone, gone)
		release_counted(counted);
}

/* What the current thread has counted; 0 if it does not run the program. As in perf.c. */
spile_long spile_fn___program_counter(struct spile_context *c, spile_long probe)
{
	const struct spile_site *site = &spile_sites[probe];
	struct counted *counted = NULL;
	struct hlist_head *heads;
	spile_long count = 0;
	unsigned long flags;

	raw_local_irq_save(flags);
	heads = READ_ONCE(site->program_counter.heads);
	if (heads && current->mm &&
	    spile_program_of_mm(site->probe->program_counter.program, current->mm))
		counted = find_counted(heads, current);
	if (counted) {
		struct perf_event *event = counted->event;

		if (event->oncpu == raw_smp_processor_id())
			event->pmu->read(event);
		count = local64_read(&event->count);
	}
	raw_local_irq_restore(flags);
	return count;
}

const struct spile_family spile_program_counter_family = {
	.kind = SPILE_PROBE_PROGRAM_COUNTER,
	.with = &spile_uprobe_family,
	.type = "perf",
	.may_be_sampled = true,
	.by = SPILE_BY_PERF,
	.exit = release_program_counters,
	.arm = arm_program_counter,
	.reports = spile_maps_report,
	.detach = detach_program_counter,
	.disarm = disarm_program_counters,
};
