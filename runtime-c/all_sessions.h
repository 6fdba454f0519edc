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

/* What other sessions took of the current CPU. */
struct spile_other_shares {
	u32 all;
	u32 most;		/* the largest of them */
	u32 limited;		/* of all, those of users with limits */
	u32 most_limited;	/* the largest of these */
};

/*
 * States this session's share of the current CPU in an interval of so many cycles that ends
 * now, and adds up the other sessions' in intervals that overlap with it. With preemption off;
 * any context.
 */
void spile_sessions_share(u32 own, u64 now, u64 interval, struct spile_other_shares *others);

int __must_check spile_sessions_init(void);
void spile_sessions_exit(void);

#endif
