/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One lock for each global that needs exclusion. A handler takes all of its locks before it
 * begins, in ascending order, or none, so there are no deadlocks. It owns its CPU's context, so
 * it never waits for a run that it has interrupted.
 */
#ifndef SPILE_LOCK_H
#define SPILE_LOCK_H

#include <linux/types.h>

#include "script.h"

/*
 * locks: (index << 2) | enum spile_lock_mode, ascending. False: could not be taken in
 * time, none is held.
 */
bool spile_lock_all(const unsigned int *locks, unsigned int count);
void spile_unlock_all(const unsigned int *locks, unsigned int count);

int __must_check spile_lock_init(void);
void spile_lock_exit(void);

#endif
