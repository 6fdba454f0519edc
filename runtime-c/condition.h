/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Conditions of probe points: probes whose condition does not hold are turned off.
 */
#ifndef SPILE_CONDITION_H
#define SPILE_CONDITION_H

#include "site.h"

struct spile_cpu;

/*
 * Called when a handler that may have changed variables of conditions has ended: its locks are
 * released and its context is still owned. Probes are turned on or off soon after. Any context.
 * Bounded by the number of conditions.
 */
void spile_conditions_look(struct spile_cpu *cpu);

/*
 * Turns off a site that has just been armed, if its condition does not hold or a user has switched
 * it off. Under spile_session.lock.
 */
void spile_condition_apply(struct spile_site *site);

/* SPILE_SWITCH (abi.h). Process context, without spile_session.lock. */
int spile_condition_switch(const struct spile_switch *request);

void spile_conditions_init(void);
void spile_conditions_exit(void);

#endif
