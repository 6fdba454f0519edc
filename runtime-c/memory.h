/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fault-safe access to memory. Any context; never sleeps or pages in; 0 or -EFAULT. User memory
 * is that of the current task; a kernel thread has none.
 */
#ifndef SPILE_MEMORY_H
#define SPILE_MEMORY_H

#include <linux/compiler.h>
#include <linux/types.h>

#include "script.h"

int __must_check spile_memory_read(void *to, spile_ulong address, size_t bytes, bool user);
int __must_check spile_memory_write(spile_ulong address, const void *from, size_t bytes);

/*
 * Whether the page tables in use are the current task's: not those of the next task, which the
 * scheduler loads before it switches tasks, nor others in an NMI at that moment. They stay what
 * they are while interrupts are off.
 */
bool spile_memory_is_own(void);

/*
 * Whether the whole range is in the kernel's half; only such memory may be read by
 * copy_from_kernel_nofault().
 */
bool spile_memory_is_kernel(unsigned long address, size_t bytes);

#ifdef CONFIG_X86_64
/* Bits of a canonical address, by the page tables in use. */
unsigned int spile_memory_address_bits(void);
#endif

/*
 * Up to `most` bytes of a NUL-terminated string, without the NUL, to out. Returns their
 * number or -EFAULT. Reads at most 63 bytes after the NUL, within the same aligned 64.
 */
int __must_check spile_memory_string(char *out, unsigned int most, spile_ulong address, bool user);

struct spile_context;
/*
 * After one of these has failed for user memory: sets SPILE_E_RESTART, if the run may end with
 * that.
 */
void spile_restart(struct spile_context *c);

#endif
