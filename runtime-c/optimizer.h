/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Keeps the kernel's optimizer of kprobes away while many are enabled.
 *
 * It turns the breakpoints of kprobes into jumps (kernel/kprobes.c, kprobe_optimizer()). It starts
 * five jiffies after a kprobe was enabled, and holds the lock of all kprobes until every task has
 * been scheduled, which takes a tenth of a second. Where this lock is handed on in turn
 * (PREEMPT_RT, and elsewhere to who waits for long) one kprobe is enabled in between: thousands
 * take minutes.
 *
 * All functions: process context, under spile_session.lock.
 */
#ifndef SPILE_OPTIMIZER_H
#define SPILE_OPTIMIZER_H

#include <linux/kprobes.h>

/*
 * `count` kprobes are going to be enabled; few are left to the optimizer at once.
 * spile_optimizer_resume() follows.
 */
void spile_optimizer_postpone(unsigned int count);

/*
 * Before a kprobe is enabled, which is registered: it is not turned into a jump yet. Once in a
 * while those before it are, together.
 */
void spile_optimizer_leave(struct kprobe *kprobe);

/* All that were left are optimised where the kernel can, from now on and in the background. */
void spile_optimizer_resume(void);

#endif
