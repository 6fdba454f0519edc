/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SPILE_PAGE_IN_H
#define SPILE_PAGE_IN_H

/*
 * Makes the page at the address in the current process's memory resident, unless a user could
 * withhold it: 0 or an error. `flags` may be FAULT_FLAG_WRITE. Under the lock of the mappings,
 * which is not released meanwhile. It may sleep.
 */
int __must_check spile_page_in(unsigned long address, unsigned int flags);

#endif
