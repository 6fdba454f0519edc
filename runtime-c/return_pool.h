/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Many returns by few kretprobes. Under spile_session.lock, but for the hits.
 */
#ifndef SPILE_RETURN_POOL_H
#define SPILE_RETURN_POOL_H

#include "site.h"

/* Has the returns of the site, whose entries ftrace tells of, hooked with others'. False: there are too few
 * of them, or it wants one of its own, or there is no memory. The site's kprobe is left as it is. */
bool spile_return_pool_join(struct spile_site *site);

/* The sites' entries are told no more: they are members no more, if they were. When it returns none of
 * their handlers runs. */
void spile_return_pool_leave(struct spile_site *const *sites, unsigned int count);

/* A member's function was entered, which ftrace has told (entry.c). Preemption off. */
void spile_return_pool_enter(struct spile_site *site, struct pt_regs *regs);

#endif
