/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Many returns by few kretprobes. Under spile_session.lock, but for the hits.
 */
#ifndef SPILE_RETURN_POOL_H
#define SPILE_RETURN_POOL_H

#include <linux/atomic.h>
#include <linux/preempt.h>

#include "site.h"

/*
 * Whether the return of the call that is being entered may be hooked; counts it if not.
 * At a hooked return kretprobe_rethook_handler() forgets which kprobe runs on this CPU,
 * and a kprobe that has interrupted with a breakpoint needs to know that behind its
 * handler. A breakpoint in the kernel counts as NMI (exc_int3()): the calls in it,
 * those that a fault of the handler makes among them, return without us.
 */
static __always_inline bool spile_return_may_be_hooked(struct spile_site *site)
{
	if (likely(!in_nmi()))
		return true;
	atomic_long_inc(&site->unhooked);
	return false;
}

/*
 * Has the returns of the site, whose entries ftrace tells of, hooked with others'.
 * False: there are too few of them, or it wants one of its own, or there is no memory.
 * The site's kprobe is left as it is.
 */
bool spile_return_pool_join(struct spile_site *site);

/*
 * The sites' entries are told no more: they are members no more, if they were. When it
 * returns none of their handlers runs.
 */
void spile_return_pool_leave(struct spile_site *const *sites, unsigned int count);

/* A member's function was entered, which ftrace has told (entry.c). Preemption off. */
void spile_return_pool_enter(struct spile_site *site, struct pt_regs *regs);

#endif
