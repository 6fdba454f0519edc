/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SPILE_SYSCALL_COMPAT_H
#define SPILE_SYSCALL_COMPAT_H

/*
 * Converts the six arguments of a 32-bit program's call to the order and width of 64-bit
 * programs, and returns the number of the corresponding call. Runs in the calling task; does not
 * sleep.
 */
long spile_syscall_unwrap(long number, unsigned long *words);

#endif
