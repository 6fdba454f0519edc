/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SPILE_SYSCALL_ENTRY_H
#define SPILE_SYSCALL_ENTRY_H

struct saved_call;
struct spile_site;

/* Allocates memory for saved values, if the script saves any. */
int __must_check spile_syscall_entry_init(void);
void spile_syscall_entry_exit(void);

/* The functions below run in the calling task, with interrupts off. */

/*
 * At the entry of a call: runs the site's entry handler, and keeps the values that it saves
 * until the return.
 */
void spile_syscall_save(struct spile_site *site, unsigned long *words);
/*
 * At the return: the saved entry; NULL if there is none, as for a call that was in
 * progress when the script started.
 */
struct saved_call *spile_syscall_saved(const struct spile_site *site);
char *spile_syscall_data(struct saved_call *call);
void spile_syscall_forget(struct saved_call *call);

#endif
