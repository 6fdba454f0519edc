/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The estimated cost of the script on this machine before it runs, and sampling (abi.h,
 * SPILE_MEASURE and SPILE_SAMPLE).
 */
#ifndef SPILE_BUDGET_H
#define SPILE_BUDGET_H

#include "abi/abi.h"

struct spile_site;

/*
 * Arms all probes for a while, and counts their hits without running a handler. Process
 * context, without spile_session.lock. -EBUSY: the session has started, or is being
 * measured; -EINTR: a signal, SPILE_CANCEL or SPILE_STOP came before the time was over. After
 * that nothing is armed any more, and what is armed is disarmed by a work item.
 */
int spile_budget_measure(struct spile_measure *measure);

/* At unload, when nobody can begin it any more: waits for that work item. */
void spile_budget_exit(void);

/*
 * Once the session has started, the handler runs for one in this many hits. Process context,
 * under spile_session.lock, before the session starts.
 */
int spile_budget_sample(const struct spile_sampling *sample);

/* At the start of the session: resets the counts of SPILE_MEASURE. */
void spile_budget_forget(void);

/*
 * Whether sampling turns this hit of a sampled site away, or a user has switched it off; if so, it is
 * counted. Any context, preemption off.
 */
bool spile_budget_skips(const struct spile_site *site);

/*
 * Measures the time of an instruction, in picoseconds, of code like a handler's: calls,
 * branches, copied bytes.
 */
u32 spile_budget_instruction_time(void);

#endif
