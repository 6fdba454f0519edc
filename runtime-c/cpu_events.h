/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sites whose hits come from events of the kernel's perf, one on each online CPU. CPUs that come
 * online get events; those of a CPU that goes offline are no longer used, and are replaced when
 * it is back.
 */
#ifndef SPILE_CPU_EVENTS_H
#define SPILE_CPU_EVENTS_H

#include <linux/compiler.h>
#include <linux/perf_event.h>

#include "site.h"

/* Creates site->events and keeps it up to date as CPUs come and go. Process context. */
int __must_check spile_cpu_events_make(struct spile_site *site);
/* When it returns, no event of the site calls a handler any more. */
void spile_cpu_events_release(struct spile_site *site);

/* Stops following CPUs. */
void spile_cpu_events_exit(void);

#endif
