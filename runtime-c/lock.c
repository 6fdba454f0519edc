// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Try-locks of globals, of two kinds: for readers and a writer; and for each CPU's own data
 * (LOCAL) or that of all CPUs (ALL).
 *
 * The kernel's own locks are not used: they are probe-able functions, carry debugging, and sleep
 * on PREEMPT_RT. Any context. A busy lock is waited for as long as it changes hands or its
 * holder makes progress; if it does not (a hypervisor has preempted the holder's CPU), for
 * spile_script.lock_wait. No CPU waits for itself: a hit that interrupts a handler is skipped.
 *
 * No run waits for longer than MOST_WAITS times lock_wait (100 ms) in all, however many locks it
 * takes, and whatever the holders do: hits run with interrupts off, and other CPUs depend on this
 * one (clocks, RCU, IPIs; the kernel's watchdogs report after seconds). A handler takes some microseconds, so a longer wait
 * is not a merely busy lock, but a script with long handlers (MAXACTION), or starvation. There
 * may always be a reader, so a waiting writer blocks new readers after a while.
 *
 * LOCAL writes only memory of its own CPU, so any number of CPUs feed aggregates without cache
 * line contention. ALL bears the cost: it checks every CPU. Of an array with stripes (map.h)
 * handlers take one of these in place of LOCAL, and ALL checks every stripe.
 */
#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/timex.h>

#include "context.h"
#include "lock.h"
#include "map.h"
#include "script.h"
#include "session.h"
#include "stripe.h"

struct lock {
	/*
	 * number of readers; -1: a writer, or a holder of ALL or a CPU waiting for it; readers +
	 * INT_MIN: a writer waits and blocks new readers
	 */
	atomic_t holders;
	u32 turns;		/* times that WRITE or ALL was held; written by the holder */
	struct spile_stripe *stripes;	/* of the array, if it is striped */
	unsigned int stripe_count;	/* or 0 */
} ____cacheline_aligned_in_smp;

static struct lock *all_locks;

/*
 * A byte per CPU and lock: 1 while a handler on that CPU holds the lock. LOCAL is only this
 * byte; in the other modes it shows waiters which CPU they wait for.
 */
static DEFINE_PER_CPU(u8 *, local_holders);

static __always_inline void note_holder(unsigned int index, u8 holds)
{
	WRITE_ONCE(this_cpu_read(local_holders)[index], holds);
}

static __always_inline bool try_read(struct lock *lock)
{
	int holders = atomic_read(&lock->holders);

	/* Acquires the last writer's changes; pairs with the release in unlock(). */
	return holders >= 0 &&
	       atomic_cmpxchg_acquire(&lock->holders, holders, holders + 1) == holders;
}

static __always_inline bool try_write(struct lock *lock)
{
	/* Acquires the last holder's changes; pairs with the releases in unlock(). */
	return !atomic_read(&lock->holders) && atomic_cmpxchg_acquire(&lock->holders, 0, -1) == 0;
}

static __always_inline bool try_local(unsigned int index)
{
	u8 *mine = &this_cpu_read(local_holders)[index];

	/*
	 * Our byte is stored before holders is loaded, and try_all() stores holders before it
	 * loads the bytes: of two CPUs that do this at the same time, at least one sees the
	 * other. xchg() is a full barrier. Pairs with the cmpxchg() in try_all().
	 */
	xchg(mine, 1);
	/* Acquires the changes of the last holder of ALL; pairs with the release in unlock(). */
	if (likely(!atomic_read_acquire(&all_locks[index].holders)))
		return true;
	/* Release, as in unlock(). Nothing was written under the lock. */
	smp_store_release(mine, 0);
	return false;
}

/*
 * WRITE after a long wait: new readers are blocked until the present ones have left; *claimed is
 * set then.
 */
static bool try_write_first(struct lock *lock, bool *claimed)
{
	int holders = atomic_read(&lock->holders);

	/* The acquires pair as in try_write(). */
	if (*claimed)
		return holders == INT_MIN &&
		       atomic_cmpxchg_acquire(&lock->holders, INT_MIN, -1) == INT_MIN;
	if (holders > 0)
		*claimed = atomic_cmpxchg(&lock->holders, holders, holders + INT_MIN) == holders;
	return !holders && atomic_cmpxchg_acquire(&lock->holders, 0, -1) == 0;
}

/* Unblocks readers; the present ones still hold the lock. cmpxchg() fails only while they leave. */
static void give_up_write(struct lock *lock)
{
	int holders = atomic_read(&lock->holders), seen;

	while ((seen = atomic_cmpxchg(&lock->holders, holders, holders - INT_MIN)) != holders)
		holders = seen;
}

/* Whether LOCAL is held on any CPU, or a stripe. */
static bool is_held(unsigned int index)
{
	const struct lock *lock = &all_locks[index];
	unsigned int i;
	int cpu;

	for (i = 0; i < lock->stripe_count; i++)
		/* Acquire: for the changes made under the lock; pairs with spile_map_release(). */
		if (smp_load_acquire(&lock->stripes[i].holder))
			return true;
	if (lock->stripe_count)
		return false;
	for_each_possible_cpu(cpu)
		/*
		 * Acquires the values fed before the byte was cleared; pairs with the
		 * release in unlock().
		 */
		if (smp_load_acquire(&per_cpu(local_holders, cpu)[index]))
			return true;
	return false;
}

/*
 * If this fails because other CPUs hold it LOCAL, or a stripe, holders stays -1 so that no further
 * ones can take it while we wait; *claimed is set then.
 */
static bool try_all(unsigned int index, bool *claimed)
{
	struct lock *lock = &all_locks[index];

	if (!*claimed) {
		if (atomic_read(&lock->holders) || atomic_cmpxchg(&lock->holders, 0, -1) != 0)
			return false;
		*claimed = true;
	}
	return !is_held(index);
}

/* Acquire semantics on success. claimed: as in try_all(). */
static __always_inline bool try_lock(unsigned int index, enum spile_lock_mode mode, bool *claimed)
{
	bool held;

	switch (mode) {
	case SPILE_LOCK_READ:
		held = try_read(&all_locks[index]);
		break;
	case SPILE_LOCK_WRITE:
		held = try_write(&all_locks[index]);
		break;
	case SPILE_LOCK_LOCAL:
		return try_local(index);
	default:
		held = try_all(index, claimed);
	}
	if (held)
		note_holder(index, 1);
	return held;
}

/* Release semantics: changes made under the lock are visible before it is free. */
static __always_inline void unlock(unsigned int index, enum spile_lock_mode mode)
{
	switch (mode) {
	case SPILE_LOCK_READ:
		note_holder(index, 0);
		/* Pairs with the acquire in try_write(). */
		atomic_dec_return_release(&all_locks[index].holders);
		break;
	case SPILE_LOCK_LOCAL:
		/* Releases the fed values; pairs with the acquire in is_held(). */
		smp_store_release(&this_cpu_read(local_holders)[index], 0);
		break;
	default:
		note_holder(index, 0);
		WRITE_ONCE(all_locks[index].turns, all_locks[index].turns + 1);
		/*
		 * Pairs with the acquires in try_read(), try_write() and
		 * try_local().
		 */
		atomic_set_release(&all_locks[index].holders, 0);
	}
}

enum {
	/*
	 * Longest time of one poll, ns: at least lock_wait / MOST_POLL_TIME polls are
	 * made, however late it is by then. If our CPU was preempted by a hypervisor,
	 * the holder's may have been too.
	 */
	MOST_POLL_TIME = 4096,
	MOST_WAITS = 100,	/* times lock_wait, for locks that change hands all the time */
	/* of one poll, for the script's overhead: a hypervisor may have preempted our CPU */
	MOST_POLL_CYCLES = 16384,
};

#ifndef KEEP_AWAY_PART
/* A writer that has waited for this part of lock_wait blocks new readers. */
#define KEEP_AWAY_PART 4
#endif

/* The stripe that a run waits for. */
struct wanted {
	struct spile_context *context;
	struct spile_stripe *stripe;
	bool another;			/* the run holds a lower stripe of the array */
};

static __always_inline u32 state_of(const struct lock *lock, const struct wanted *wanted)
{
	/* Readers do not count turns; stripes change from one holder to the next. */
	u32 state = READ_ONCE(lock->turns) + atomic_read(&lock->holders);

	return wanted ? state + (u32)((unsigned long)READ_ONCE(wanted->stripe->holder) >> 6) :
			state;
}

/*
 * Changes while a handler makes progress: with each operation that may fail, and each turn of a
 * loop. The handler writes these fields without atomics; an old value only makes the waiter poll
 * again.
 */
static __no_kcsan u64 progress_in(const struct spile_context *c)
{
	return (u64)(u32)READ_ONCE(c->actions) + ((u64)READ_ONCE(c->steps) << 20) +
	       ((u64)READ_ONCE(c->location) << 40);
}

/* Progress of the handlers that hold the lock, or stripes of the array. */
static u64 progress_of(unsigned int index)
{
	const struct lock *lock = &all_locks[index];
	u64 progress = 0;
	unsigned int i;
	int cpu;

	for_each_possible_cpu(cpu)
		if (READ_ONCE(per_cpu(local_holders, cpu)[index]))
			progress += progress_in(&per_cpu(spile_cpus, cpu)->context);
	for (i = 0; i < lock->stripe_count; i++) {
		const struct spile_context *c = READ_ONCE(lock->stripes[i].holder);

		if (c)
			progress += progress_in(c);
	}
	return progress;
}

/* Used in place of a mode: one stripe of the array. */
enum { ONE_STRIPE = SPILE_LOCK_ALL + 1 };

/* long_since: the run has waited for a long time. */
static bool try_again(unsigned int index, unsigned int mode, bool *claimed, struct wanted *wanted,
		      bool long_since)
{
	bool held;

	if (mode == SPILE_LOCK_WRITE && long_since) {
		held = try_write_first(&all_locks[index], claimed);
		if (held)
			note_holder(index, 1);
		return held;
	}
	if (mode != ONE_STRIPE)
		return try_lock(index, mode, claimed);
	if (wanted->another)
		return spile_stripe_try_another(wanted->context, &wanted->stripe->holder);
	/* While the array is claimed, the stripe need not be tried. */
	return !atomic_read(&all_locks[index].holders) &&
	       spile_stripe_try(wanted->context, &wanted->stripe->holder,
				&all_locks[index].holders.counter);
}

/* Adds a wait that began then to those of the run. */
static void note_wait(struct spile_waited *waited, u64 time, u64 cycles, u32 polls)
{
	waited->time += time;
	waited->cycles += min_t(u64, cycles, (u64)polls * MOST_POLL_CYCLES);
}

/* The lock is busy. wanted: ONE_STRIPE. late: the run cannot be skipped any more. */
static noinline bool wait_for(unsigned int index, unsigned int mode, bool *claimed,
			      struct wanted *wanted, bool late)
{
	const u32 least_polls = (late ? SPILE_LATE_WAIT : spile_script.lock_wait) / MOST_POLL_TIME;
	const u64 least = late ? SPILE_LATE_WAIT : spile_script.lock_wait;
	const u64 most = late ? SPILE_LATE_WAIT : (u64)spile_script.lock_wait * MOST_WAITS;
	struct spile_cpu *cpu = spile_this_cpu();
	struct spile_waited *waited = &cpu->waited;
	struct lock *lock = &all_locks[index];
	u64 now = ktime_get_mono_fast_ns(), began = now, moved_at = now, looked_at = now;
	u64 cycles = get_cycles(), time = 0, progress = 0, before = 0;
	u32 polls = 0, polled = waited->polls, state = state_of(lock, wanted), seen;
	bool held, stuck, too_long;

	/* At the run's end its waiting is forgotten. */
	cpu->context.stale |= SPILE_STALE_LONG;
	do {
		cpu_relax();
		held = try_again(index, mode, claimed, wanted,
				 now - began >= spile_script.lock_wait / KEEP_AWAY_PART);
		if (held)
			break;
		now = ktime_get_mono_fast_ns();
		polls++;
		waited->polls++;
		seen = state_of(lock, wanted);
		/*
		 * This is expensive with many CPUs, so it is done just often enough to see
		 * progress in time.
		 */
		if (now - looked_at >= spile_script.lock_wait / 4) {
			looked_at = now;
			before = progress;
			progress = progress_of(index);
			if (before && progress != before)
				state = ~seen;
		}
		/* In an NMI during an update of the clock, time may go back. */
		if (seen != state || now < moved_at) {
			state = seen;
			moved_at = now;
			polls = 0;
		}
		time = now > began ? now - began : 0;
		stuck = now - moved_at >= least && polls >= least_polls;
		too_long = time && waited->time + time >= most && waited->polls >= least_polls;
	} while (!stuck && !too_long);
	cycles = get_cycles() - cycles;
	note_wait(waited, time, cycles, waited->polls - polled);
	/* Not once more as part of a long run (actions.c). */
	cpu->looked_at += cycles;
	if (held)
		return true;
	if (*claimed && mode == SPILE_LOCK_WRITE)
		give_up_write(lock);
	else if (*claimed)
		atomic_set_release(&lock->holders, 0);
	return false;
}

/* Takes the locks from `at` on, which was busy. */
static noinline bool lock_rest(const unsigned int *locks, unsigned int count, unsigned int at)
{
	for (; at < count; at++) {
		unsigned int index = locks[at] >> 2;
		enum spile_lock_mode mode = locks[at] & 3;
		bool claimed = false;

		if (try_lock(index, mode, &claimed) ||
		    wait_for(index, mode, &claimed, NULL, false))
			continue;
		spile_unlock_all(locks, at);
		return false;
	}
	return true;
}

bool spile_stripe_wait(struct spile_context *c, const struct spile_table *table,
		       struct spile_stripe *stripe, bool another)
{
	struct wanted wanted = { .context = c, .stripe = stripe, .another = another };
	bool claimed = false;

	return wait_for(table->map->lock, ONE_STRIPE, &claimed, &wanted, c->late);
}

bool spile_lock_all(const unsigned int *locks, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		unsigned int index = locks[i] >> 2;
		bool held;

		switch (locks[i] & 3) {
		case SPILE_LOCK_WRITE:
			held = try_write(&all_locks[index]);
			if (likely(held))
				note_holder(index, 1);
			break;
		case SPILE_LOCK_LOCAL:
			held = try_local(index);
			break;
		case SPILE_LOCK_READ:
			held = try_read(&all_locks[index]);
			if (likely(held))
				note_holder(index, 1);
			break;
		default:
			held = false;
		}
		if (unlikely(!held))
			return lock_rest(locks, count, i);
	}
	return true;
}

void spile_unlock_all(const unsigned int *locks, unsigned int count)
{
	while (count--)
		unlock(locks[count] >> 2, locks[count] & 3);
}

bool spile_stripes_lock(struct spile_context *c, const struct spile_table *table)
{
	bool claimed = false;

	return try_lock(table->map->lock, SPILE_LOCK_ALL, &claimed) ||
	       wait_for(table->map->lock, SPILE_LOCK_ALL, &claimed, NULL, c->late);
}

void spile_stripes_unlock(const struct spile_table *table)
{
	unlock(table->map->lock, SPILE_LOCK_ALL);
}

/* Connects the locks of arrays with their stripes; the tables exist already. */
static void lock_stripes(void)
{
	unsigned int i;

	for (i = 0; i < spile_script.map_count; i++) {
		struct spile_table *table = &spile_tables[i];
		struct lock *lock;

		if (!table->stripes_bytes)
			continue;
		lock = &all_locks[table->map->lock];
		lock->stripes = table->stripes;
		lock->stripe_count = table->stripe_count;
		table->claimed = &lock->holders.counter;
	}
}

int spile_lock_init(void)
{
	size_t local_bytes = ALIGN(spile_script.lock_count, SMP_CACHE_BYTES);
	int cpu;

	if (!spile_script.lock_count)
		return 0;
	all_locks = kvcalloc(spile_script.lock_count, sizeof(*all_locks), GFP_KERNEL);
	if (!all_locks)
		return -ENOMEM;
	for_each_possible_cpu(cpu) {
		u8 *bytes = kzalloc_node(local_bytes, GFP_KERNEL, cpu_to_node(cpu));

		if (!bytes) {
			spile_lock_exit();
			return -ENOMEM;
		}
		per_cpu(local_holders, cpu) = bytes;
	}
	lock_stripes();
	spile_session_charge(spile_script.lock_count * sizeof(*all_locks) +
			     local_bytes * num_possible_cpus());
	return 0;
}

void spile_lock_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		kfree(per_cpu(local_holders, cpu));
		per_cpu(local_holders, cpu) = NULL;
	}
	kvfree(all_locks);
	all_locks = NULL;
}
