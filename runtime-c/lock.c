// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reader-writer try-locks of globals.
 *
 * The kernel's own locks are not used: they are probe-able functions, carry
 * debugging, and sleep on PREEMPT_RT. Any context; bounded by SPILE_LOCK_WAIT_NS.
 */
#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "lock.h"
#include "script.h"
#include "session.h"

struct lock {
	atomic_t holders;	/* readers, or -1: a writer */
} ____cacheline_aligned_in_smp;

static struct lock *all_locks;

/* Acquire order on success: what the last holder wrote is seen. */
static __always_inline bool try_lock(struct lock *lock, bool write)
{
	int holders = atomic_read(&lock->holders);

	if (write)
		return !holders && atomic_cmpxchg_acquire(&lock->holders, 0, -1) == 0;
	return holders >= 0 &&
	       atomic_cmpxchg_acquire(&lock->holders, holders, holders + 1) == holders;
}

/* Release order: what was written under the lock is visible before it is free. */
static __always_inline void unlock(struct lock *lock, bool write)
{
	if (write)
		atomic_set_release(&lock->holders, 0);
	else
		atomic_dec_return_release(&lock->holders);
}

/* The lock was held: try on until *deadline, which the first wait of a run sets. */
static noinline bool wait_for(struct lock *lock, bool write, u64 *deadline)
{
	u64 now = ktime_get_mono_fast_ns();
	u64 started = now;

	if (!*deadline)
		*deadline = now + SPILE_LOCK_WAIT_NS;
	do {
		cpu_relax();
		if (try_lock(lock, write))
			return true;
		now = ktime_get_mono_fast_ns();
		/* An NMI in the middle of a clock update may see time go back. */
	} while (now < *deadline && now >= started);
	return false;
}

bool spile_lock_all(const unsigned int *locks, unsigned int count)
{
	u64 deadline = 0;
	unsigned int i;

	for (i = 0; i < count; i++) {
		struct lock *lock = &all_locks[locks[i] >> 1];
		bool write = locks[i] & 1;

		if (likely(try_lock(lock, write)) || wait_for(lock, write, &deadline))
			continue;
		spile_unlock_all(locks, i);
		return false;
	}
	return true;
}

void spile_unlock_all(const unsigned int *locks, unsigned int count)
{
	while (count--)
		unlock(&all_locks[locks[count] >> 1], locks[count] & 1);
}

int spile_lock_init(void)
{
	if (!spile_script.lock_count)
		return 0;
	all_locks = kvcalloc(spile_script.lock_count, sizeof(*all_locks), GFP_KERNEL);
	if (!all_locks)
		return -ENOMEM;
	spile_session_charge(spile_script.lock_count * sizeof(*all_locks));
	return 0;
}

void spile_lock_exit(void)
{
	kvfree(all_locks);
	all_locks = NULL;
}
