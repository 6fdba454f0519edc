/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limits on the statements of a run (MAXACTION), and on its time. */
#ifndef SPILE_ACTIONS_H
#define SPILE_ACTIONS_H

#include "context.h"

/* Statements granted to a run before it calls actions.c; constant after load. */
extern int spile_actions_at_once;
extern u64 spile_begun;		/* spile_context.begun with those, at no location yet */

/* Called before the first run. */
void spile_actions_init(void);

/*
 * A run begins, and the previous one may not have ended by spile_run_ended(). Called by the
 * owner of the context.
 */
void spile_actions_begin(struct spile_cpu *cpu);

#endif
