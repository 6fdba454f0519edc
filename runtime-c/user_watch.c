// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Watchpoints on data of programs: a debug register, of which x86 has four, while a thread runs.
 * The threads and processes that one makes inherit it; exec ends it. It is made where the program
 * begins, by a breakpoint at its entry point: there the task may sleep, and the address at which
 * the program has been loaded is known. For processes that run already it is made when the
 * probe is armed.
 */
#include <linux/cred.h>
#include <linux/elf.h>
#include <linux/err.h>
#include <linux/kconfig.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/uprobes.h>

#include "context.h"
#include "family.h"
#include "features.h"
#include "held_maps.h"
#include "owner.h"
#include "session.h"
#include "site.h"
#include "uprobe.h"
#include "watch.h"

#if IS_ENABLED(CONFIG_HAVE_HW_BREAKPOINT)
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>

/*
 * Threads for which one site has events of its own. Any user may run the program, so some of them are
 * for root and the session's owner, and one other user cannot have all of the rest.
 */
enum {
	MOST_WATCHED = 1024,
	MOST_WATCHED_OTHERS = MOST_WATCHED / 4 * 3,
	MOST_WATCHED_USER = MOST_WATCHED / 2,
};

/* A thread that has an event which it has not inherited. */
struct watched {
	struct list_head list;
	struct task_struct *task;	/* with a reference */
	kuid_t user;			/* who ran the program */
	struct perf_event *event;
};

/* The lists of all sites: they change when programs begin. */
static struct semaphore watched_lock = __SEMAPHORE_INITIALIZER(watched_lock, 1);

/* How far from its link-time addresses the process has its program; by the auxiliary vector. */
static unsigned long program_slide(const struct mm_struct *mm, const struct spile_user_watch *watch)
{
	unsigned int i;

	if (!watch->linked)
		return 0;
	for (i = 0; i + 1 < AT_VECTOR_SIZE; i += 2)
		if (mm->saved_auxv[i] == AT_ENTRY)
			return mm->saved_auxv[i + 1] - watch->entry;
	return 0;
}

static void forget(struct spile_site *site, struct watched *watched)
{
	perf_event_release_kernel(watched->event);
	list_del(&watched->list);
	put_task_struct(watched->task);
	kfree(watched);
	site->user_watch.count--;
}

/*
 * Whether the thread runs with this event. Not always the one for which it was made: where a CPU
 * switches from a thread to one that has inherited all its events, the kernel exchanges the two
 * contexts (perf_event_context_sched_out()), so each goes on with, and ends, the other's events.
 */
static bool is_event_of(const struct perf_event *event, const struct task_struct *task)
{
	const struct perf_event_context *context = READ_ONCE(event->ctx);

	return READ_ONCE(event->state) > PERF_EVENT_STATE_EXIT && context &&
		READ_ONCE(context->task) == task;
}

/* Whether threads have inherited it, which lose it with this one. */
static bool is_inherited(struct perf_event *event)
{
	bool is;

	mutex_lock(&event->child_mutex);
	is = !list_empty(&event->child_list);
	mutex_unlock(&event->child_mutex);
	return is;
}

/* Whether the thread has the event or one that comes from it. */
static bool is_watched_by(struct perf_event *event, const struct task_struct *task)
{
	const struct perf_event *child;
	bool is;

	mutex_lock(&event->child_mutex);
	is = is_event_of(event, task);
	list_for_each_entry(child, &event->child_list, child_list)
		is = is || is_event_of(child, task);
	mutex_unlock(&event->child_mutex);
	return is;
}

/* One was made for this thread. Under watched_lock. */
static bool has_own_event(const struct spile_site *site, const struct task_struct *task)
{
	struct watched *watched;

	list_for_each_entry(watched, &site->user_watch.threads, list)
		if (watched->task == task)
			return true;
	return false;
}

/* Under watched_lock. */
static bool is_watched(const struct spile_site *site, const struct task_struct *task)
{
	struct watched *watched;

	list_for_each_entry(watched, &site->user_watch.threads, list)
		if (is_watched_by(watched->event, task))
			return true;
	return false;
}

#ifndef SPILE_HAVE_PERF_REMOVE_ON_EXEC
static void ignore_hit(struct perf_event *event, struct perf_sample_data *data,
		       struct pt_regs *regs)
{
}

/* The event outlasts an exec, which fills the memory of the next program. */
static void handle_user_watch_hit(struct perf_event *event, struct perf_sample_data *data,
		       struct pt_regs *regs)
{
	if (!current->in_execve)
		spile_watch_hit(event, data, regs);
}

/*
 * The current thread keeps inherited events of what it ran before, which are not this one's to
 * end. They do nothing from now on, but for one at the same address: true.
 */
static bool has_inherited(struct spile_site *site, unsigned long address)
{
	struct watched *watched;
	bool has = false;

	list_for_each_entry(watched, &site->user_watch.threads, list) {
		struct perf_event *child;

		mutex_lock(&watched->event->child_mutex);
		list_for_each_entry(child, &watched->event->child_list, child_list) {
			if (!is_event_of(child, current) ||
			    child->overflow_handler == ignore_hit)
				continue;
			if (!has && child->attr.bp_addr == address)
				has = true;
			else
				WRITE_ONCE(child->overflow_handler, ignore_hit);
		}
		mutex_unlock(&watched->event->child_mutex);
	}
	return has;
}
#else
#define handle_user_watch_hit spile_watch_hit

static bool has_inherited(struct spile_site *site, unsigned long address)
{
	return false;
}
#endif

/*
 * Where a program begins: gives back the events that no thread has any more, and those of the
 * current one, which are of what it ran before or of memory that was not complete yet. Not while
 * others have inherited them. Under watched_lock.
 */
static void forget_ended(struct spile_site *site)
{
	struct watched *watched, *next;

	list_for_each_entry_safe(watched, next, &site->user_watch.threads, list) {
		struct perf_event *event = watched->event;
		bool is_current = is_event_of(event, current);

		if (is_current || READ_ONCE(event->state) <= PERF_EVENT_STATE_EXIT) {
			if (!is_inherited(event)) {
				forget(site, watched);
				continue;
			}
			if (is_current)
				perf_event_disable(event);
		}
	}
}

/*
 * Gives back the oldest event of the current thread, which still takes one of its debug registers,
 * though only others have use for it: forget_ended(). Whether there was one. Under watched_lock.
 */
static bool forget_oldest(struct spile_site *site)
{
	struct watched *watched;

	list_for_each_entry_reverse(watched, &site->user_watch.threads, list) {
		if (watched->task == current) {
			forget(site, watched);
			return true;
		}
	}
	return false;
}

/*
 * program_slide() of the task; false: it has no memory. No reference is taken: the last one may
 * wait for ever for the process's requests (exit_aio()).
 */
static bool find_slide(struct task_struct *task, const struct spile_user_watch *watch,
		       unsigned long *slide)
{
	bool found;

	task_lock(task);
	found = task->mm;
	if (found)
		*slide = program_slide(task->mm, watch);
	task_unlock(task);
	return found;
}

static bool may_watch_more(const struct spile_site *site, kuid_t user)
{
	unsigned int others = 0, own = 0;
	const struct watched *watched;

	if (site->user_watch.count >= MOST_WATCHED)
		return false;
	if (spile_owner_prefers(user))
		return true;
	list_for_each_entry(watched, &site->user_watch.threads, list) {
		others += !spile_owner_prefers(watched->user);
		own += uid_eq(watched->user, user);
	}
	return others < MOST_WATCHED_OTHERS && own < MOST_WATCHED_USER;
}

static int watch_task(struct spile_site *site, struct task_struct *task)
{
	const struct spile_user_watch *watch = &site->probe->user_watch;
	unsigned long slide = 0, address;
	struct perf_event_attr attr;
	struct watched *watched;

	if (!find_slide(task, watch, &slide))
		return 0;
	/*
	 * A process may write its own auxiliary vector (PR_SET_MM_MAP), and the kernel's check of the
	 * address asks for the rights of who makes the event.
	 */
	address = site->probe->address + slide;
	if (address >= TASK_SIZE_MAX || watch->length > TASK_SIZE_MAX - address)
		return 0;
	if (task == current && has_inherited(site, address))
		return 0;
	if (!may_watch_more(site, task_uid(task)))
		return -EUSERS;
	spile_watch_describe(&attr, address, watch->length, watch->reads);
	attr.inherit = 1;
#ifdef SPILE_HAVE_PERF_REMOVE_ON_EXEC
	attr.remove_on_exec = 1;
#endif
	watched = kzalloc(sizeof(*watched), GFP_KERNEL);
	if (!watched)
		return -ENOMEM;
	watched->event = perf_event_create_kernel_counter(&attr, -1, task, handle_user_watch_hit, site);
	if (IS_ERR(watched->event)) {
		int error = PTR_ERR(watched->event);

		kfree(watched);
		return error;
	}
	get_task_struct(task);
	watched->task = task;
	watched->user = task_uid(task);
	list_add(&watched->list, &site->user_watch.threads);
	site->user_watch.count++;
	return 0;
}

static void report_unwatched(struct spile_site *site, struct task_struct *task, int error)
{
	if (site->user_watch.reported || error == -ESRCH || fatal_signal_pending(current))
		return;
	site->user_watch.reported = true;
	if (error == -EUSERS)
		spile_session_emit(
			SPILE_RECORD_WARN,
			"probe %s does not watch the data in process %d, nor in others that begin now: it watches %u threads, of %d that it can watch, of which a user other than root and its own has %d at most; -x PID limits the session to one process and its children",
			site->probe->point, task_tgid_nr(task), site->user_watch.count,
			MOST_WATCHED, MOST_WATCHED_USER);
	else if (error == -ENOSPC)
		spile_session_emit(
			SPILE_RECORD_WARN,
			"probe %s cannot watch the data in process %d: all of the four debug registers are in use, by other probes or by debuggers",
			site->probe->point, task_tgid_nr(task));
	else
		spile_session_emit(SPILE_RECORD_WARN,
				   "probe %s cannot watch the data in process %d (rc %d)",
				   site->probe->point, task_tgid_nr(task), error);
}

static void report_lost(struct spile_site *site)
{
	if (site->user_watch.reported)
		return;
	site->user_watch.reported = true;
	spile_session_emit(
		SPILE_RECORD_WARN,
		"probe %s no longer watches the data in the children that process %d made before it ran the program again: there are four debug registers",
		site->probe->point, task_tgid_nr(current));
}

/* Where a program begins; in its process. */
static int handle_program_start(struct uprobe_consumer *self, struct pt_regs *regs
				SPILE_UPROBE_DATA)
{
	struct spile_site *site = container_of(self, struct spile_site, user_watch.consumer);
	int error;

	if (!spile_follows_current(site->probe->user_watch.pid))
		return 0;
	if (!spile_uprobe_lock(&watched_lock)) {
		report_unwatched(site, current, -EBUSY);
		return 0;
	}
	forget_ended(site);
	error = watch_task(site, current);
	if (error == -ENOSPC && forget_oldest(site)) {
		report_lost(site);
		error = watch_task(site, current);
	}
	if (error)
		report_unwatched(site, current, error);
	up(&watched_lock);
	return 0;
}

static bool is_meant(const struct spile_user_watch *watch, struct task_struct *thread)
{
	bool meant;

	if (thread->flags & (PF_EXITING | PF_KTHREAD))
		return false;
	task_lock(thread);
	meant = thread->mm && spile_follows_task(watch->pid, thread) &&
		spile_program_of_mm(watch->program, thread->mm);
	task_unlock(thread);
	return meant;
}

/*
 * Threads that run the program already, have no event of their own and may have one, each with
 * a reference: MOST_WATCHED at most.
 */
static unsigned int find_unwatched(struct spile_site *site, struct task_struct **found)
{
	struct task_struct *process, *thread;
	unsigned int count = 0;

	rcu_read_lock();
	for_each_process_thread(process, thread)
		if (count < MOST_WATCHED && is_meant(&site->probe->user_watch, thread) &&
		    !has_own_event(site, thread) && may_watch_more(site, task_uid(thread)))
			found[count++] = get_task_struct(thread);
	rcu_read_unlock();
	return count;
}

/* False: the lock could not be had. */
static bool watch_running_one(struct spile_site *site, struct task_struct *task)
{
	int error = 0;

	if (!spile_uprobe_lock(&watched_lock)) {
		report_unwatched(site, task, -EBUSY);
		return false;
	}
	if (!is_watched(site, task))
		error = watch_task(site, task);
	if (error)
		report_unwatched(site, task, error);
	up(&watched_lock);
	return true;
}

static int watch_running(struct spile_site *site)
{
	struct task_struct **found = kvcalloc(MOST_WATCHED, sizeof(*found), GFP_KERNEL);
	unsigned int count, before, i;
	bool is_held = false;

	if (!found)
		return -ENOMEM;
	/* One user's threads may be all that are found first: then those of others are behind. */
	do {
		if (!spile_uprobe_lock(&watched_lock)) {
			report_unwatched(site, current, -EBUSY);
			break;
		}
		before = site->user_watch.count;
		count = find_unwatched(site, found);
		up(&watched_lock);
		for (i = 0; i < count; i++) {
			if (!is_held && !spile_arming_ended())
				is_held = !watch_running_one(site, found[i]);
			put_task_struct(found[i]);
		}
	} while (!is_held && !spile_arming_ended() && count == MOST_WATCHED &&
		 READ_ONCE(site->user_watch.count) > before);
	kvfree(found);
	return 0;
}

static void remove_start(struct spile_site *site)
{
	spile_uprobe_remove(site->user_watch.inode, site->probe->user_watch.entry_offset,
			    &site->user_watch.consumer, site->user_watch.handle);
}

static void stop_watching(struct spile_site *site)
{
	struct watched *watched, *next;

	spile_uprobe_wait();
	down(&watched_lock);
	list_for_each_entry_safe(watched, next, &site->user_watch.threads, list)
		forget(site, watched);
	up(&watched_lock);
}

static int arm_user_watch(struct spile_site *site)
{
	const struct spile_user_watch *watch = &site->probe->user_watch;
	struct inode *inode = spile_program_inode(watch->program);
	int error;

	if (IS_ERR(inode))
		return PTR_ERR(inode);
	if (spile_maps_are_held(inode))
		return -EBUSY;
	memset(&site->user_watch, 0, sizeof(site->user_watch));
	INIT_LIST_HEAD(&site->user_watch.threads);
	site->user_watch.inode = inode;
	site->user_watch.consumer.handler = handle_program_start;
	error = spile_uprobe_add(inode, watch->entry_offset, 0, &site->user_watch.consumer,
				 &site->user_watch.handle);
	if (error)
		return error;
	error = watch_running(site);
	if (error) {
		remove_start(site);
		stop_watching(site);
	}
	return error;
}

static bool detach_user_watch(struct spile_site *site)
{
	if (spile_maps_delay(site->user_watch.inode, site->probe->point))
		return false;
	remove_start(site);
	return true;
}

static void disarm_user_watches(struct spile_site *const *sites, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		stop_watching(sites[i]);
	synchronize_rcu();
}
#else
static int arm_user_watch(struct spile_site *site)
{
	return -EOPNOTSUPP;
}

static bool detach_user_watch(struct spile_site *site)
{
	return true;
}

static void disarm_user_watches(struct spile_site *const *sites, unsigned int count)
{
}
#endif

const struct spile_family spile_user_watch_family = {
	.kind = SPILE_PROBE_USER_WATCH,
	.with = &spile_uprobe_family,
	.type = "hwbkpt",
	.may_be_sampled = true,
	.arm = arm_user_watch,
	.reports = spile_maps_report,
	.detach = detach_user_watch,
	.disarm = disarm_user_watches,
};
