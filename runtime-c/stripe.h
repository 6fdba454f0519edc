/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Taking the stripe of an array: one attempt, which writes no cache line that all CPUs share. A
 * run that needs the whole array (SPILE_LOCK_ALL) claims it, and waits until no stripe is held
 * (lock.c).
 */
#ifndef SPILE_STRIPE_H
#define SPILE_STRIPE_H

#include "portable.h"
#include "script.h"

/*
 * How long a run that has had effects, and cannot be skipped (spile_context.late), waits for a
 * CPU that does not run: as long as a host may reasonably stop one, ns.
 */
#define SPILE_LATE_WAIT 2000000000u

/*
 * Takes the stripe with this holder, of the array with this `claimed`; spile_map_release()
 * releases it.
 */
static inline bool spile_stripe_try(struct spile_context *c, struct spile_context **holder,
				    const int *claimed)
{
	/*
	 * The holder is stored before `claimed` is loaded, and try_all() stores `claimed` before
	 * it loads the holders: of two CPUs that do this at the same time, at least one sees the
	 * other. cmpxchg() is a full barrier. Pairs with the one in try_all() and, for the last
	 * holder's changes, with the release in spile_map_release().
	 */
	if (spile_unlikely(READ_ONCE(*holder) != NULL) ||
	    spile_unlikely(cmpxchg(holder, NULL, c) != NULL))
		return false;
	/* Acquire: for the writes of the last holder of ALL; pairs with the release in unlock(). */
	if (spile_likely(!smp_load_acquire(claimed)))
		return true;
	/* Release, as in unlock(). Nothing was written under the stripe. */
	smp_store_release(holder, NULL);
	return false;
}

/*
 * The same for a run that holds a lower stripe of the array: it may be claimed by now, by a run
 * that waits for that stripe, so whoever claims it must not keep this run from the others.
 * is_held() looks at stripes in ascending order, and so sees the lower one as long as this run
 * may take another; if it sees that one released, it sees those that were taken before. Pairs with
 * the acquire there.
 */
static inline bool spile_stripe_try_another(struct spile_context *c, struct spile_context **holder)
{
	return !READ_ONCE(*holder) && cmpxchg(holder, NULL, c) == NULL;
}

#endif
