/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Function entries by ftrace. Under spile_session.lock, except for the hits.
 */
#ifndef SPILE_ENTRY_H
#define SPILE_ENTRY_H

#include "arming.h"
#include "site.h"

/*
 * Whether ftrace could serve the site, as far as is known before its kprobe is
 * registered.
 */
bool spile_entry_may_be(const struct spile_site *site);

/*
 * Whether ftrace calls from the site by its looks, so that no kprobe need be registered
 * for it. Its kprobe's address is then that of ftrace's call.
 */
bool spile_entry_is_plain(struct spile_site *site);

/* Adds a site for which ftrace calls at the address of its kprobe; false: it must be a kprobe. */
bool spile_entry_add(struct spile_site *site);

/* The added site gets no more hits until it is added again. Some may be under way. */
void spile_entry_drop(struct spile_site *site);

/*
 * Arms the sites added since then; an error if some or all of it could not be
 * (spile_entry_refused()): -EBUSY while ftrace is switched off for the whole kernel.
 */
int spile_entry_commit(void);
bool spile_entry_refused(const struct spile_site *site);
void spile_entry_forget_refused(void);

/* Stops serving those of the sites that are served. When it returns none of their handlers runs. */
void spile_entry_remove(struct spile_site *const *sites, unsigned int count);

/*
 * The kernel changes the text of 4,096 addresses in a second, emulated (6.1). For each step it
 * looks at all places that ftrace knows, as long as for 500 of them.
 */
#define SPILE_ENTRY_STEPS { .size = 1024, .least = 1024 }

/* Addresses that ftrace serves. */
unsigned int spile_entry_served(void);
/*
 * Of a session that has ended: a step of removing them, without the sites. False if there is
 * nothing to do for it; spile_entry_remove() does the rest.
 */
bool __must_check spile_entry_remove_some(struct spile_steps *steps);

/* Whether a served site gets all registers. */
bool spile_entry_is_whole(const struct spile_site *site);

int __must_check spile_entry_init(void);
void spile_entry_exit(void);

#endif
