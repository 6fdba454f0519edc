/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How a run takes the stripe of an array: in one attempt, which writes no line that all CPUs
 * share. Whoever wants the array as a whole (SPILE_LOCK_ALL) claims it, and waits until no
 * stripe is held (lock.c).
 */
#ifndef SPILE_STRIPE_H
#define SPILE_STRIPE_H

#include "portable.h"
#include "script.h"

/* holder: the stripe's. claimed: the array's. It is released by spile_map_release(). */
static inline bool spile_stripe_try(struct spile_context *c, struct spile_context **holder,
				    const int *claimed)
{
	/*
	 * The store of the holder before the load of `claimed`, and in try_all() the store
	 * of that before the loads of the holders: of two that come at the same time at
	 * least one sees the other. cmpxchg() is a full barrier. Pairs with that in
	 * try_all(), and, for the last holder's changes, with the release in
	 * spile_map_release().
	 */
	if (spile_unlikely(READ_ONCE(*holder) != NULL) ||
	    spile_unlikely(cmpxchg(holder, NULL, c) != NULL))
		return false;
	/* Acquire: writes of the last holder of ALL; pairs with the release in unlock(). */
	if (spile_likely(!smp_load_acquire(claimed)))
		return true;
	/* Release: as unlock(). Nothing was written. */
	smp_store_release(holder, NULL);
	return false;
}

#endif
