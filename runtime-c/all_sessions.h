/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How much of each CPU's time the handlers of all sessions take: each is limited by itself
 * (guard.c), and several of them could leave nothing of it.
 */
#ifndef SPILE_ALL_SESSIONS_H
#define SPILE_ALL_SESSIONS_H

#include <linux/types.h>

/* A share of all. */
enum { SPILE_ALL_OF_A_CPU = 1000 };

/*
 * States this session's share of the current CPU in an interval that ends now. Returns the
 * other sessions' in their last intervals, and the largest of them. With preemption off; any
 * context.
 */
u32 spile_sessions_share(u32 own, u64 now, u64 interval, u32 *most);

int __must_check spile_sessions_init(void);
void spile_sessions_exit(void);

#endif
