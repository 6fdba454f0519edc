// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perf events and timer.profile: one event on each CPU that is there when the
 * session starts. Handlers run in NMI for hardware events, in hard interrupts for
 * the kernel's own.
 */
#include <linux/cpu.h>
#include <linux/err.h>
#include <linux/perf_event.h>
#include <linux/slab.h>

#include "context.h"
#include "site.h"

static void handle_overflow(struct perf_event *event, struct perf_sample_data *data, struct pt_regs *regs)
{
	unsigned long flags;

	raw_local_irq_save(flags);
	spile_context_run(event->overflow_handler_context, SPILE_STATE_RUNNING, (unsigned long *)regs);
	raw_local_irq_restore(flags);
}

static void release_events(struct spile_site *site)
{
	int cpu;

	for_each_possible_cpu(cpu)
		if (site->events[cpu])
			perf_event_release_kernel(site->events[cpu]);
	kfree(site->events);
	site->events = NULL;
}

static struct perf_event_attr attributes(const struct spile_perf *perf)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = perf->type,
		.config = perf->config,
		.pinned = 1,
	};

	switch (perf->sample) {
	case SPILE_SAMPLE_FREQUENCY:
		attr.freq = 1;
		attr.sample_freq = perf->value;
		break;
	case SPILE_SAMPLE_TICK:
		attr.sample_period = NSEC_PER_SEC / HZ;
		break;
	case SPILE_SAMPLE_PERIOD:
		attr.sample_period = perf->value;
		break;
	}
	return attr;
}

static int arm_events(struct spile_site *site)
{
	struct perf_event_attr attr = attributes(&site->probe->perf);
	int error = 0, cpu;

	site->events = kcalloc(nr_cpu_ids, sizeof(*site->events), GFP_KERNEL);
	if (!site->events)
		return -ENOMEM;
	cpus_read_lock();
	for_each_online_cpu(cpu) {
		struct perf_event *event =
			perf_event_create_kernel_counter(&attr, cpu, NULL, handle_overflow, site);

		if (IS_ERR(event)) {
			error = PTR_ERR(event);
			break;
		}
		site->events[cpu] = event;
	}
	cpus_read_unlock();
	if (error)
		release_events(site);
	return error;
}

static void disarm_events(struct spile_site *const *sites, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		release_events(sites[i]);
}

const struct spile_family spile_perf_family = {
	.by = SPILE_BY_PERF,
	.arm = arm_events,
	.disarm = disarm_events,
};
