/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Many returns by few kretprobes. Under spile_session.lock, except for the hits.
 */
#ifndef SPILE_RETURN_POOL_H
#define SPILE_RETURN_POOL_H

#include <linux/atomic.h>
#include <linux/preempt.h>

#include "site.h"

/*
 * Whether the return of the call that is being entered may be hooked; counts it if not.
 * A hooked return makes kretprobe_rethook_handler() clear the current kprobe of this
 * CPU, but a kprobe that was hit through a breakpoint needs it after its handler. A
 * breakpoint in the kernel counts as NMI (exc_int3()): calls within it, such as those
 * of a fault in the handler, are not followed.
 */
static __always_inline bool spile_return_may_be_hooked(struct spile_site *site)
{
	if (likely(!in_nmi()))
		return true;
	atomic_long_inc(&site->unhooked);
	return false;
}

/*
 * Hooks the returns of the site, whose entries ftrace reports, through a shared
 * kretprobe. False: there are too few of them, or the site needs one of its own, or
 * there is no memory. The site's kprobe is not changed.
 */
bool spile_return_pool_join(struct spile_site *site);

/*
 * Removes the sites from their pools, if they are in one; ftrace no longer reports
 * their entries. When it returns, none of their handlers runs.
 */
void spile_return_pool_leave(struct spile_site *const *sites, unsigned int count);

/* Called by entry.c when the function of a member is entered. Preemption off. */
void spile_return_pool_enter(struct spile_site *site, struct pt_regs *regs);

#endif
