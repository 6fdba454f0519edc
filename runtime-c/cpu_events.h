/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sites whose hits come from events of the kernel's perf, one on each CPU: of CPUs that are
 * online, and of those that come online. A CPU that goes offline takes its events out of
 * use; it gets others when it is back.
 */
#ifndef SPILE_CPU_EVENTS_H
#define SPILE_CPU_EVENTS_H

#include <linux/compiler.h>
#include <linux/perf_event.h>

#include "site.h"

/* Creates site->events and keeps it up to date as CPUs come and go. Process context. */
int __must_check spile_cpu_events_make(struct spile_site *site);
/* No event of the site calls anything any more when it returns. */
void spile_cpu_events_release(struct spile_site *site);

/* CPUs are followed no more. */
void spile_cpu_events_exit(void);

#endif
