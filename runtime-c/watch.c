// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Watchpoints on data of the kernel: a debug register of each CPU (cpu_events.h).
 * There are four on x86, and debuggers use them too.
 */
#include <linux/err.h>
#include <linux/kconfig.h>
#include <linux/rcupdate.h>

#include "attach.h"
#include "context.h"
#include "cpu_events.h"
#include "family.h"
#include "site.h"
#include "watch.h"

#if IS_ENABLED(CONFIG_HAVE_HW_BREAKPOINT)
#include <linux/hw_breakpoint.h>
#include <linux/irqflags.h>
#include <linux/perf_event.h>

void spile_watch_hit(struct perf_event *event, struct perf_sample_data *data,
		     struct pt_regs *regs)
{
	struct spile_site *site = event->overflow_handler_context;
	unsigned long flags;

	raw_local_irq_save(flags);
	spile_context_run(site, SPILE_STATE_RUNNING, (unsigned long *)regs);
	raw_local_irq_restore(flags);
}

void spile_watch_describe(struct perf_event_attr *attr, unsigned long address, unsigned int length,
			  bool reads)
{
	hw_breakpoint_init(attr);
	attr->bp_addr = address;
	attr->bp_len = length;		/* HW_BREAKPOINT_LEN_n is n */
	attr->bp_type = reads ? HW_BREAKPOINT_RW : HW_BREAKPOINT_W;
}

static struct perf_event *create_watch_event(struct spile_site *site, int cpu)
{
	const struct spile_probe *probe = site->probe;
	struct perf_event_attr attr;

	spile_watch_describe(&attr, probe->address + (probe->target < 0 ? 0 : spile_attach_slide()),
			     probe->watch.length, probe->watch.reads);
	return perf_event_create_kernel_counter(&attr, cpu, NULL, spile_watch_hit, site);
}
#else
static struct perf_event *create_watch_event(struct spile_site *site, int cpu)
{
	return ERR_PTR(-EOPNOTSUPP);
}
#endif

static void disarm_watches(struct spile_site *const *sites, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		spile_cpu_events_release(sites[i]);
	synchronize_rcu();
}

const struct spile_family spile_watch_family = {
	.kind = SPILE_PROBE_WATCH,
	.type = "hwbkpt",
	.may_be_sampled = true,
	.create_event = create_watch_event,
	.arm = spile_cpu_events_make,
	.disarm = disarm_watches,
};
