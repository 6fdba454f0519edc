/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of code that was unloaded: of removed modules, and of the init sections of loaded ones.
 * Records hold addresses, whose names the loader asks for when it reads the records (symbol.c);
 * by then other code may be there.
 *
 * Entries are made when code is unloaded, and only if the script writes such records, or names
 * addresses that it has stored (spile_script.defers_names).
 *
 * A stored address is text, "0xADDRESS" (backtrace()). Where code is loaded at a place that
 * other code has left during the session, that is not enough: such code has a number, and its
 * addresses are stored as "0xADDRESS@NUMBER". The same holds for init sections, whose memory is
 * reused all the time. Other addresses have no number, so that a stack stays the same key when
 * modules elsewhere are loaded and unloaded.
 */
#ifndef SPILE_PAST_CODE_H
#define SPILE_PAST_CODE_H

#include <linux/types.h>

struct module;

/*
 * From a module notifier: code that is loaded with this event (COMING: all), and code that
 * is unloaded with it (LIVE: the init sections; GOING: all).
 */
void spile_past_code_event(unsigned long event, struct module *module);

/*
 * Whether code was unloaded, so that spile_past_code_time() may return a value other than 0. Any
 * context.
 */
bool spile_past_code_any(void);

/* Number of the code at the address; 0 if it has none. Any context. */
u64 spile_code_number(unsigned long address);

/*
 * A time, for SPILE_SYMBOL, at which the code with this number (0: the first code there) was at
 * the kernel address. Returns 0 if it is there now, and 1 if it is not known any more. Any
 * context.
 */
u64 spile_past_code_time(unsigned long address, u64 number);

/* As spile_symbol_text(), for the address in that code. Any context. */
void spile_stored_symbol_text(char *text, unsigned long address, u64 number);

/* Process context. Loaded modules stay loaded while the lock is held. */
void spile_past_code_lock(void);
void spile_past_code_unlock(void);

/*
 * Under the lock. False if no recorded code was at the address at that time
 * (CLOCK_MONOTONIC, ns). `text` has SPILE_SYMBOL_TEXT bytes, written as
 * spile_symbol_text() does; `until`: when it was unloaded.
 */
bool spile_past_code_text(char *text, unsigned long address, u64 time, u64 *until);
/*
 * Under the lock. The same for the code that was unloaded last at the address, at any time;
 * init sections come last. For addresses that a script has stored, where no code is now.
 */
bool spile_past_code_latest(char *text, unsigned long address);
/*
 * Under the lock. Whether other code than `text` names was at the address in this
 * session, or may have been. Init sections, which run once, do not count.
 */
bool spile_past_code_differs(const char *text, unsigned long address);
/*
 * Under the lock. Entries up to this time may have been dropped, so that in older
 * records only the kernel's own addresses are certain; 0: none was dropped.
 */
u64 spile_past_code_forgotten(void);

/* Called when there are no more events. */
void spile_past_code_exit(void);

#endif
