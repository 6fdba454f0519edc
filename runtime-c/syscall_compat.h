/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SPILE_SYSCALL_COMPAT_H
#define SPILE_SYSCALL_COMPAT_H

/*
 * Brings the six arguments of a 32-bit program's call into the order and width
 * that 64-bit programs' have, and returns the number of the call that is meant.
 * In the task that calls; does not sleep.
 */
long spile_syscall_unwrap(long number, unsigned long *words);

#endif
