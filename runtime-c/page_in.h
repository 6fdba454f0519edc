/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SPILE_PAGE_IN_H
#define SPILE_PAGE_IN_H

#include <linux/types.h>

struct mm_struct;
struct super_block;

/* Whether a process decides when the pages of this file system's files come, or if they do: FUSE. */
bool spile_is_served_by_process(const struct super_block *super);

/*
 * Makes the page at the address in the current process's memory resident, unless a user could
 * withhold it: 0 or an error; -EAGAIN: it has waited, and may have come or not. `flags` may be
 * FAULT_FLAG_WRITE. Called with the lock of the mappings, for reading, which it releases. It may sleep,
 * until a fatal signal.
 */
int __must_check spile_page_in(unsigned long address, unsigned int flags);

/*
 * For handlers, whose end the end of the session waits for, and which may sleep: locks the mappings for
 * reading. False: they could not be locked in a tenth of a second, or, with `while_running`, the
 * session does not run any more.
 */
bool __must_check spile_lock_maps(struct mm_struct *mm, bool while_running);
/* spile_page_in() with that lock; whether the page was resident. */
bool __must_check spile_page_in_soon(unsigned long address, unsigned int flags, bool while_running);

#endif
