/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Arming and disarming many probes: it can be ended, other tasks run meanwhile, and the
 * session is ended if the machine cannot bear the hits.
 */
#ifndef SPILE_ARMING_H
#define SPILE_ARMING_H

#include <linux/types.h>

/*
 * Ends arming for good, whoever does it. Any process context, without
 * spile_session.lock.
 */
void spile_arming_cancel(void);

/*
 * Whether arming is to end: it was cancelled, its caller is being killed, or the session has ended.
 */
bool spile_arming_ended(void);

/* Lets others run; false when arming is to end. Under spile_session.lock, between two sites. */
bool spile_arming_goes_on(void);

/*
 * How fast sites are armed for which the kernel takes long, one after the other: as
 * kprobes, which it looks for in all its jump labels.
 */
struct spile_arming_pace {
	unsigned int count;	/* of them in all */
	unsigned int done;
	u64 began;		/* ns */
	bool reported;
};
void spile_arming_begins(struct spile_arming_pace *pace);
/*
 * One more was tried. The first ones show what all may take: if that is long, a WARN
 * record says so. Under spile_session.lock.
 */
void spile_arming_keeps_pace(struct spile_arming_pace *pace);

/*
 * All is armed and hits are still turned away: counts them for a moment, and ends the
 * session with an error if what their handlers would take is more than the CPUs have.
 * Not of few probes. Under spile_session.lock.
 */
void spile_arming_judge(void);

#endif
