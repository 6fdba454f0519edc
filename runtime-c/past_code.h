/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of code that has gone: of modules that were removed, and of the init
 * sections of those that came. Records hold addresses, which the loader has named
 * when it reads them (symbol.c), and by then others may be there.
 *
 * Kept from the moment at which code goes, while there may be records of before;
 * only where the script writes such records (spile_script.defers_names).
 */
#ifndef SPILE_PAST_CODE_H
#define SPILE_PAST_CODE_H

#include <linux/types.h>

struct module;

/* From a module notifier: what goes with this event (LIVE: the init sections; GOING: all). */
void spile_past_code_event(unsigned long event, struct module *module);

/* Process context. A module that is there stays while the lock is held. */
void spile_past_code_lock(void);
void spile_past_code_unlock(void);

/*
 * Under the lock. False if no code that is kept was at the address at that time
 * (CLOCK_MONOTONIC, ns). `text` has SPILE_SYMBOL_TEXT bytes, written as
 * spile_symbol_text() does; `until`: when it went.
 */
bool spile_past_code_text(char *text, unsigned long address, u64 time, u64 *until);
/*
 * Under the lock. What went up to this time may not be kept any more, so that of
 * records of before only the kernel's own addresses are sure; 0: all is kept.
 */
u64 spile_past_code_forgotten(void);

/* When no event comes any more. */
void spile_past_code_exit(void);

#endif
