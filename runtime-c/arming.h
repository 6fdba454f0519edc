/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Arming and disarming many probes: it can be ended, other tasks run meanwhile, and the
 * session is ended if the machine cannot bear the hits.
 */
#ifndef SPILE_ARMING_H
#define SPILE_ARMING_H

#include <linux/types.h>

#include "abi/abi.h"

/*
 * Ends arming permanently, whichever task does it, after the step that is under way; does
 * not wait for that. Any process context, without spile_session.lock.
 */
void spile_arming_cancel(void);

/* Whether arming is to end: it was cancelled, or the session has ended. */
bool spile_arming_ended(void);

/*
 * Work on many places that is done in steps, after each of which it can be ended. A step
 * takes about SPILE_STEP_MILLISECONDS, which on a busy machine is fewer places.
 */
enum {
	SPILE_STEP_MILLISECONDS = 150,
	SPILE_STEP_MOST = 4096,
};

struct spile_steps {
	unsigned int size;		/* places of the next step */
	unsigned int least;		/* fewer are not worth what a step takes by itself */
	u64 began;			/* ns: the one under way */
};

/* The places of the next step: at most `rest`, which is not 0. */
unsigned int spile_step_begins(struct spile_steps *steps, unsigned int rest);
/* It is done, with `count` places. */
void spile_step_ends(struct spile_steps *steps, unsigned int count);

/* Lets others run; false when arming is to end. Under spile_session.lock, between two sites. */
bool spile_arming_goes_on(void);

/*
 * How fast sites are armed that become kprobes, one after the other (pace.c). `sites`
 * of them are registered from now on, with a kprobe at each of `places`, in an order in
 * which the first ones are like the others. Under spile_session.lock, as all of these.
 */
void spile_arming_begins(unsigned int sites, unsigned int places);
/*
 * One more was tried. The first ones show what all may take: if that is long, a WARN
 * record says so. `enabling` measures what enabling one takes, in ns.
 */
void spile_arming_registered(u64 (*enabling)(void));
/* All are registered; `count` of them are enabled now. */
void spile_arming_enables(unsigned int count);
void spile_arming_enabled(void);
void spile_arming_is_over(void);
/* What is left to do, as far as it is known. At any time, without the lock. */
void spile_arming_state(struct spile_arming *state);

/*
 * All is armed and hits are still turned away: counts them for a moment, and ends the
 * session with an error if what their handlers would take is more than the CPUs have.
 * Not of few probes. Under spile_session.lock.
 */
void spile_arming_judge(void);

#endif
