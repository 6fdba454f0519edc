/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SPILE_SYSCALL_COMPAT_H
#define SPILE_SYSCALL_COMPAT_H

#include <linux/thread_info.h>

/*
 * Whether the current task is in a call of a 32-bit program. Not in_compat_syscall(): with
 * CONFIG_X86_X32_ABI it looks for a bit of the call's number, which is -1 after rt_sigreturn()
 * and in interrupts of user space.
 */
static inline bool spile_is_compat_call(void)
{
	return in_ia32_syscall();
}

/*
 * Converts the six arguments of a 32-bit program's call to the order and width of 64-bit
 * programs, and returns the number of the corresponding call. Runs in the calling task; does not
 * sleep.
 */
long spile_syscall_unwrap(long number, unsigned long *words);

#endif
