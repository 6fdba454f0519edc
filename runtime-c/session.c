// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * States and the transitions between them. Everything here except ask_stop() runs in process
 * context. Calls that begin or end the session are under spile_session.calls, so one at a time.
 *
 * Probes are armed by a work item, and what is left is disarmed by another. The kernel may need
 * a second for one kprobe in a large module: whoever starts a session, or ends it, does not wait
 * for that. So a call that ends the session does without spile_session.lock if it is held for
 * long. Then hits are turned away, and the probes are disarmed when the device is closed.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/spinlock.h>
#include <linux/threads.h>
#include <linux/timekeeping.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "arming.h"
#include "budget.h"
#include "context.h"
#include "features.h"
#include "guard.h"
#include "lock.h"
#include "map_init.h"
#include "module_notifier.h"
#include "optional.h"
#include "owner.h"
#include "ring.h"
#include "scalar.h"
#include "session.h"
#include "setting.h"
#include "site.h"
#include "stack_report.h"
#include "uprobe.h"

int spile_session_state __read_mostly = SPILE_STATE_LOADED;

struct spile_session spile_session = {
	.calls = __MUTEX_INITIALIZER(spile_session.calls),
	.lock = __MUTEX_INITIALIZER(spile_session.lock),
};

/* Callers of SPILE_START, which return when the probes are armed, or are not going to be. */
static DECLARE_WAIT_QUEUE_HEAD(starting);

void spile_exit(struct spile_context *c)
{
	spile_session_ask_stop(spile_cpu_of(c));
}

void spile_session_ask_stop(struct spile_cpu *cpu)
{
	int state = READ_ONCE(spile_session_state);

	if (state != SPILE_STATE_RUNNING && state != SPILE_STATE_STARTING)
		return;
	/* If several CPUs do this, only one writes the record. */
	if (cmpxchg(&spile_session_state, state, SPILE_STATE_STOPPING) == state)
		spile_ring_exit(cpu);
}

void spile_session_emit(enum spile_record_kind kind, const char *format, ...)
{
	struct spile_cpu *cpu;
	va_list arguments;

	/* A begin probe runs for as long as its process needs; others do not wait for that. */
	cpu = READ_ONCE(spile_session_state) == SPILE_STATE_STARTING ? spile_context_claim_soon() :
								       spile_context_claim();
	if (!cpu) {
		/* As a record that is lost: this is read when the loader ends. */
		atomic_inc(&spile_session.errors);
		return;
	}
	va_start(arguments, format);
	spile_ring_format_of(cpu, kind, 0, format, arguments);
	va_end(arguments);
	spile_context_release(cpu);
}

bool spile_session_fits(const char *what, size_t shared, size_t for_each_cpu, unsigned int cpus)
{
	unsigned long available = si_mem_available();
	size_t all = 0;

	if (!check_mul_overflow(for_each_cpu, (size_t)cpus, &all) &&
	    !check_add_overflow(all, shared, &all) && (all >> PAGE_SHIFT) < available / 4 * 3)
		return true;
	if (spile_owner_may_log())
		pr_err("%s: refused: its %s need %zu KiB, and %zu KiB for each of %u CPUs; %lu KiB are free\n",
		       THIS_MODULE->name, what, shared >> 10, for_each_cpu >> 10, cpus,
		       available << (PAGE_SHIFT - 10));
	return false;
}

bool spile_session_affords(const char *what, size_t shared, size_t for_each_cpu,
			   unsigned int cpus)
{
	size_t all = 0;

	if (check_mul_overflow(for_each_cpu, (size_t)cpus, &all) ||
	    check_add_overflow(all, shared, &all))
		all = SIZE_MAX;
	if (all > spile_owner_left()) {
		if (spile_owner_may_log())
			pr_err("%s: refused: its %s need %zu KiB, which is more than its user may still take (%llu KiB)\n",
			       THIS_MODULE->name, what, all >> 10, spile_owner_left() >> 10);
		return false;
	}
	return spile_session_fits(what, shared, for_each_cpu, cpus);
}

void spile_session_removed(void)
{
	static const char text[] =
		"the module is being removed by force (rmmod -f): the session ends";
	struct spile_cpu *cpu;

	if (READ_ONCE(spile_session_state) != SPILE_STATE_RUNNING)
		return;
	/* The record may be lost for lack of space; this counter is read when the loader ends. */
	atomic_inc(&spile_session.errors);
	cpu = spile_context_claim();
	spile_ring_text(cpu, SPILE_RECORD_ERROR, SPILE_NO_LOCATION, text, sizeof(text) - 1);
	spile_context_release(cpu);
}

struct errand {
	struct work_struct work;
	void (*run)(void *argument);
	void *argument;
};

static void run_errand(struct work_struct *work)
{
	struct errand *errand = container_of(work, struct errand, work);

	errand->run(errand->argument);
}

void spile_session_in_worker(void (*run)(void *argument), void *argument)
{
	struct errand errand = { .run = run, .argument = argument };

	if (current->flags & PF_WQ_WORKER) {
		run(argument);
		return;
	}
	INIT_WORK_ONSTACK(&errand.work, run_errand);
	queue_work(spile_unbound_queue(), &errand.work);
	flush_work(&errand.work);
	destroy_work_on_stack(&errand.work);
}

/* What one worker does for callers who hold nothing. */
struct asked {
	struct list_head link;		/* empty: it has been taken */
	struct completion done;
	void (*run)(void *argument);
	void *argument;
};

/* For a moment, and by processes that may be kept from running: not to be preempted with it. */
static DEFINE_RAW_SPINLOCK(asked_lock);
static LIST_HEAD(all_asked);

static struct asked *next_asked(void)
{
	struct asked *asked;

	raw_spin_lock(&asked_lock);
	asked = list_first_entry_or_null(&all_asked, struct asked, link);
	if (asked)
		list_del_init(&asked->link);
	raw_spin_unlock(&asked_lock);
	return asked;
}

static void serve_asked(struct work_struct *unused)
{
	struct asked *asked;

	while ((asked = next_asked())) {
		asked->run(asked->argument);
		complete(&asked->done);
		cond_resched();
	}
}

static DECLARE_WORK(serving_asked, serve_asked);

/* False: it has been taken, and is being served. */
static bool withdraw_asked(struct asked *asked)
{
	bool there;

	raw_spin_lock(&asked_lock);
	there = !list_empty(&asked->link);
	list_del_init(&asked->link);
	raw_spin_unlock(&asked_lock);
	return there;
}

int spile_session_ask_worker(void (*run)(void *argument), void *argument)
{
	struct asked asked = { .run = run, .argument = argument };

	init_completion(&asked.done);
	raw_spin_lock(&asked_lock);
	list_add_tail(&asked.link, &all_asked);
	raw_spin_unlock(&asked_lock);
	queue_work(spile_unbound_queue(), &serving_asked);
	if (!wait_for_completion_killable(&asked.done))
		return 0;
	if (withdraw_asked(&asked))
		return -EINTR;
	wait_for_completion(&asked.done);
	return 0;
}

struct locked_errand {
	void (*run)(void *argument);
	void *argument;
	bool done;
};

static void run_locked(void *argument)
{
	struct locked_errand *errand = argument;

	/* Others hold it while they arm or measure, and while modules come and go. */
	if (!mutex_trylock(&spile_session.lock))
		return;
	errand->run(errand->argument);
	mutex_unlock(&spile_session.lock);
	errand->done = true;
}

int spile_session_ask_locked(void (*run)(void *argument), void *argument)
{
	struct locked_errand errand = { .run = run, .argument = argument };

	for (;;) {
		if (spile_session_ask_worker(run_locked, &errand))
			return -EINTR;
		if (errand.done)
			return 0;
		if (msleep_interruptible(1))
			return -EINTR;
	}
}

/*
 * Here and not at load: the process that loads the module is the root part of a set-uid
 * loader, which is in no cgroup of its caller.
 */
static int make_memory(u32 ring_bytes)
{
	u64 before = spile_session.memory_bytes;
	int error = spile_call_or(0, spile_maps_init);

	if (!error) {
		spile_call_if_there(spile_scalars_init);
		error = spile_lock_init();
	}
	if (!error)
		error = spile_ring_setup(ring_bytes);
	if (error) {
		spile_lock_exit();
		spile_call_if_there(spile_maps_exit);
		spile_session.memory_bytes = before;
	}
	return error;
}

int spile_session_setup(const struct spile_setup *setup)
{
	enum { DAY = 24 * 60 * 60 };
	int error = -EBUSY;

	if (setup->flags & ~(SPILE_SETUP_TIMED | SPILE_SETUP_TASKS))
		return -EINVAL;
	if (setup->west < -DAY || setup->west > DAY || setup->zone[SPILE_ZONE_BYTES - 1])
		return -EINVAL;
	/* It is an index into a bitmap of processes (follow.c). */
	if (setup->target < 0 || setup->target >= PID_MAX_LIMIT)
		return -EINVAL;
	/* Without `lock`: memory is given by the caller, which may take any time. */
	mutex_lock(&spile_session.calls);
	if (spile_session_state == SPILE_STATE_LOADED) {
		error = make_memory(setup->ring_bytes);
		if (!error) {
			spile_untimed =
				setup->flags & SPILE_SETUP_TIMED ? 0 : SPILE_OVERLOAD_SAMPLE - 1;
			spile_ring_tasks = setup->flags & SPILE_SETUP_TASKS;
			spile_session.target = setup->target;
			spile_session.loader = task_tgid_nr(current);
			spile_session.west = setup->west;
			memcpy(spile_session.zone, setup->zone, SPILE_ZONE_BYTES);
			WRITE_ONCE(spile_session_state, SPILE_STATE_READY);
		}
	}
	mutex_unlock(&spile_session.calls);
	return error;
}

static void run_in_state(struct spile_site *site, enum spile_state state)
{
	preempt_disable();
	spile_context_run(site, state, NULL);
	preempt_enable();
	cond_resched();
}

static void run_begin(struct spile_site *site)
{
	run_in_state(site, SPILE_STATE_STARTING);
}

static void run_end(struct spile_site *site)
{
	/* An end probe that spends the error budget leaves the rest to error probes. */
	if (!READ_ONCE(spile_session.failed))
		run_in_state(site, SPILE_STATE_STOPPING);
}

static void run_error(struct spile_site *site)
{
	run_in_state(site, SPILE_STATE_STOPPING);
}

static void arm_all(struct work_struct *work)
{
	mutex_lock(&spile_session.lock);
	if (!spile_arming_ended())
		spile_call_if_there(spile_sites_arm, SPILE_ALL_TARGETS);
	if (!spile_arming_ended())
		spile_call_if_there(spile_arming_judge);
	/*
	 * From here on hits run handlers; until now they were ignored. If arming was
	 * ended, SPILE_QUIET disarms.
	 */
	WRITE_ONCE(spile_session.ran, !spile_arming_ended());
	cmpxchg(&spile_session_state, SPILE_STATE_STARTING,
		spile_arming_ended() ? SPILE_STATE_STOPPING : SPILE_STATE_RUNNING);
	spile_call_if_there(spile_begun_runs);
	WRITE_ONCE(spile_session.at_work, false);
	mutex_unlock(&spile_session.lock);
	wake_up_all(&starting);
}

/* Unloading waits for it, as for the others. */
static DECLARE_WORK(arming, arm_all);

static void leave_ready(void *argument)
{
	int *error = argument;

	mutex_lock(&spile_session.lock);
	*error = spile_session.measuring ? -EBUSY : spile_call_or(0, spile_modules_check);
	if (!*error) {
		spile_call_if_there(spile_budget_forget);
		WRITE_ONCE(spile_session_state, SPILE_STATE_STARTING);
	}
	mutex_unlock(&spile_session.lock);
}

/*
 * Of a session that is READY. Under spile_session.calls, which keeps all but modules that come
 * and go from the sites; those arm nothing yet.
 */
static int begin(void)
{
	int error = 0;

	spile_session_in_worker(leave_ready, &error);
	if (error)
		return error;

	spile_ring_prepare(spile_script.begin_prints);
	spile_sites_in_order(SPILE_PROBE_BEGIN, run_begin);
	if (READ_ONCE(spile_session_state) != SPILE_STATE_STARTING)
		return 0;	/* a begin probe called exit() or failed: nothing to arm */

	spile_call_if_there(spile_sites_prepare);
	WRITE_ONCE(spile_session.at_work, true);
	queue_work(spile_unbound_queue(), &arming);
	return 0;
}

/* Under spile_session.calls; the other lock is held for long while probes are armed. */
static int start(void)
{
	switch (READ_ONCE(spile_session_state)) {
	case SPILE_STATE_READY:
		if (READ_ONCE(spile_session.measuring))
			return -EBUSY;
		return begin();
	case SPILE_STATE_STARTING:
	case SPILE_STATE_RUNNING:
	case SPILE_STATE_STOPPING:
		return 0;
	default:
		return -EINVAL;
	}
}

static bool start_is_over(void)
{
	return READ_ONCE(spile_session_state) != SPILE_STATE_STARTING ||
	       READ_ONCE(spile_session.cancelled);
}

/*
 * A signal that does not kill the caller ends the call, not the arming: a debugger or the
 * freezer may have interrupted it, and it is made again.
 */
static int wait_for_start(void)
{
	int error = wait_event_interruptible(starting, start_is_over());

	if (error && fatal_signal_pending(current)) {
		/* If the session is kept, its next loader says so. */
		WRITE_ONCE(spile_session.unarmed, true);
		spile_arming_cancel();
	} else if (error) {
		return error;
	}
	/* It was cancelled: the work item ends after its step, and is not waited for. */
	cmpxchg(&spile_session_state, SPILE_STATE_STARTING, SPILE_STATE_STOPPING);
	return 0;
}

int spile_session_start(void)
{
	int error;

	mutex_lock(&spile_session.calls);
	error = start();
	mutex_unlock(&spile_session.calls);
	return error ?: wait_for_start();
}

void spile_session_start_returns(void)
{
	wake_up_all(&starting);
}

/*
 * Unregistering a kprobe together with others, and removing an entry from ftrace, takes the
 * kernel 10,000 to 15,000 instructions (docs/bench-arming.md), and each step waits for all
 * CPUs. Who ends a session with thousands of them does not wait for it: their hits are turned
 * away, and they are disarmed when the device is closed. So are sites for which the
 * kernel would wait for others (held_maps.c).
 */
enum { MOST_AT_ONCE = 200, MOST_ENTRIES_AT_ONCE = 1000 };

/* Whether spile_session.lock was taken, which others usually hold for a moment only. */
static bool lock_soon(void)
{
	enum { PATIENCE_MILLISECONDS = 50 };
	u64 end = ktime_get_mono_fast_ns() + PATIENCE_MILLISECONDS * NSEC_PER_MSEC;

	do {
		if (mutex_trylock(&spile_session.lock))
			return true;
		usleep_range(500, 1000);
	} while (ktime_get_mono_fast_ns() < end);
	return false;
}

static void disarm_most(void *unused)
{
	if (lock_soon()) {
		WRITE_ONCE(spile_session.disarms_later,
			   spile_call_or(false, spile_sites_disarm_most, MOST_AT_ONCE,
					 MOST_ENTRIES_AT_ONCE));
		mutex_unlock(&spile_session.lock);
	} else {
		WRITE_ONCE(spile_session.disarms_later, true);
	}
}

/* False if there is nothing that could be disarmed. Under spile_session.calls. */
static bool become_quiet(void)
{
	int state = READ_ONCE(spile_session_state);

	if (state < SPILE_STATE_STARTING || state > SPILE_STATE_STOPPING)
		return false;
	if (spile_session.quiet)
		return true;
	/* A handler may have set it in the meantime: spile_session_ask_stop(). */
	xchg(&spile_session_state, SPILE_STATE_STOPPING);
	spile_session_start_returns();
	spile_session_in_worker(disarm_most, NULL);
	/* While the kernel registers a kprobe, a wait for all CPUs takes as long. */
	if (READ_ONCE(spile_session.ran))
		spile_context_wait();
	WRITE_ONCE(spile_session.quiet, true);
	return true;
}

/*
 * A step of disarming what was left; between two of them others take the lock, as modules that
 * are loaded do. False: nothing is left.
 */
static bool disarm_some(void)
{
	enum { PAUSE_MILLISECONDS = 1000 };
	enum spile_disarming result = SPILE_DISARMED_ALL;

	/*
	 * Arming holds it for as long as the kernel takes, on a busy machine minutes: a worker that waits
	 * so, to which nobody sends signals, is not reported as a hung task.
	 */
	if (mutex_lock_killable(&spile_session.lock))
		mutex_lock(&spile_session.lock);
	if (READ_ONCE(spile_session.disarms_later))
		result = spile_call_or(SPILE_DISARMED_ALL, spile_sites_disarm_some);
	if (result == SPILE_DISARMED_ALL)
		WRITE_ONCE(spile_session.disarms_later, false);
	mutex_unlock(&spile_session.lock);
	if (result == SPILE_DISARMING_HELD)
		msleep(PAUSE_MILLISECONDS);
	cond_resched();
	return result != SPILE_DISARMED_ALL;
}

/*
 * A session without a loader: nobody calls SPILE_QUIET after exit() or an error. Its end
 * probes run when a loader attaches, which reads what they print, or at unload. The loader does
 * not wait until all is disarmed: the rest is, when it closes the device.
 */
static void disarm_unattended(struct work_struct *work)
{
	mutex_lock(&spile_session.calls);
	if (!READ_ONCE(spile_session.attended) &&
	    READ_ONCE(spile_session_state) == SPILE_STATE_STOPPING)
		become_quiet();
	mutex_unlock(&spile_session.calls);
	while (!READ_ONCE(spile_session.attended) && disarm_some())
		;
}

static DECLARE_WORK(disarming, disarm_unattended);

/* Unbound: it may take seconds. Unloading waits for it. */
static void request_disarming(void)
{
	queue_work(spile_unbound_queue(), &disarming);
}

void spile_session_look_after(void)
{
	/*
	 * The state was stored, with a full barrier, before `attended` is loaded;
	 * spile_session_detached() does the opposite. At least one of the two sees the other.
	 */
	if (READ_ONCE(spile_session_state) == SPILE_STATE_STOPPING &&
	    !READ_ONCE(spile_session.attended))
		request_disarming();
}

/* All work items are over then: nobody can start the session any more. */
static void wait_for_work(void)
{
	spile_arming_cancel();
	cancel_work_sync(&arming);
	spile_call_if_there(spile_budget_exit);
	WRITE_ONCE(spile_session.at_work, false);
	cancel_work_sync(&disarming);
}

void spile_session_disarm_rest(void)
{
	wait_for_work();
	while (disarm_some())
		;
}

void spile_session_exit(void)
{
	wait_for_work();
	/* Nobody asks any more, and who has asked has been served. */
	flush_work(&serving_asked);
}

void spile_session_quiet(void)
{
	mutex_lock(&spile_session.calls);
	become_quiet();
	mutex_unlock(&spile_session.calls);
}

int spile_session_stop(void)
{
	mutex_lock(&spile_session.calls);
	if (become_quiet()) {
		spile_ring_prepare(spile_script.end_prints);
		spile_sites_in_order(SPILE_PROBE_END, run_end);
		if (READ_ONCE(spile_session.failed))
			spile_sites_in_order(SPILE_PROBE_ERROR, run_error);
		spile_stacks_report();
	}
	WRITE_ONCE(spile_session_state, SPILE_STATE_STOPPED);
	spile_ring_wake_all();
	mutex_unlock(&spile_session.calls);
	return 0;
}

int spile_session_set(const struct spile_set *set)
{
	int error = -EBUSY;

	mutex_lock(&spile_session.calls);
	if (spile_session_state == SPILE_STATE_LOADED || spile_session_state == SPILE_STATE_READY)
		error = spile_call_or(-ENOENT, spile_setting_set, set);
	if (!error && spile_call_or(false, spile_setting_in_commands, set))
		spile_owner_has_set();
	mutex_unlock(&spile_session.calls);
	return error;
}

int spile_session_keep(const struct spile_keep *keep)
{
	if (keep->keep > 1 || keep->overwrite > 1)
		return -EINVAL;
	mutex_lock(&spile_session.calls);
	spile_session.kept = keep->keep;
	spile_session.overwrite = keep->overwrite;
	mutex_unlock(&spile_session.calls);
	return 0;
}

void spile_session_attached(void)
{
	WRITE_ONCE(spile_session.attended, true);
	if (!READ_ONCE(spile_ring_overwrite))
		return;
	WRITE_ONCE(spile_ring_overwrite, false);
	/* From here on only the reader changes the tails. */
	spile_context_wait();
}

void spile_session_detached(void)
{
	bool kept;

	/* This does not wait for arming, which checks this flag between sites. */
	if (!READ_ONCE(spile_session.kept) && READ_ONCE(spile_session_state) != SPILE_STATE_LOADED)
		spile_arming_cancel();
	mutex_lock(&spile_session.calls);
	/* Opening the device for SPILE_INFO does not begin a session. */
	kept = spile_session_state == SPILE_STATE_LOADED || spile_session.kept;
	if (kept && spile_session_state == SPILE_STATE_RUNNING) {
		spile_ring_prepare_alone();
		WRITE_ONCE(spile_ring_overwrite, spile_session.overwrite);
	}
	mutex_unlock(&spile_session.calls);
	if (!kept)
		spile_session_stop();
	/* A full barrier, before the state is loaded: see spile_session_look_after(). */
	xchg(&spile_session.attended, false);
	if (READ_ONCE(spile_session_state) == SPILE_STATE_STOPPING ||
	    READ_ONCE(spile_session.disarms_later))
		request_disarming();
}
