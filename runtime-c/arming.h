/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What stands around the arming and disarming of many probes: that it can be ended,
 * that others get on meanwhile, and that what is armed is borne by the machine.
 */
#ifndef SPILE_ARMING_H
#define SPILE_ARMING_H

#include <linux/types.h>

/* Tells whoever arms to end it, for good. Any process context, without spile_session.lock. */
void spile_arming_cancel(void);

/*
 * Whether arming is to end: it was cancelled, its caller is being killed, or the session has ended.
 */
bool spile_arming_ended(void);

/* Lets others run; false when arming is to end. Under spile_session.lock, between two sites. */
bool spile_arming_goes_on(void);

/*
 * All is armed and hits are still turned away: counts them for a moment, and ends the
 * session with an error if what their handlers would take is more than the CPUs have.
 * Not of few probes. Under spile_session.lock.
 */
void spile_arming_judge(void);

#endif
