/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The statements that a run may do (MAXACTION), and the time that it may take.
 */
#ifndef SPILE_ACTIONS_H
#define SPILE_ACTIONS_H

#include "context.h"

/* Statements granted to a run before it calls actions.c; constant after load. */
extern int spile_actions_at_once;
extern u64 spile_begun;		/* spile_context.begun with those, at no location yet */

/* Before the first run. */
void spile_actions_init(void);

/*
 * A run begins whose last one is not known to have ended by spile_run_ended(). By the
 * owner of the context.
 */
void spile_actions_begin(struct spile_cpu *cpu);

#endif
