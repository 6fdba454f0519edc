// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perf events and timer.profile: one event on each CPU that is there when the
 * session starts. Handlers run in NMI for hardware events, in hard interrupts for
 * the kernel's own. A counter has no handler: other probes read it, and it stays
 * until the module goes, for they may still run when it is disarmed.
 */
#include <linux/cpu.h>
#include <linux/err.h>
#include <linux/perf_event.h>
#include <linux/slab.h>

#include "builtins.h"
#include "context.h"
#include "site.h"

static void handle_overflow(struct perf_event *event, struct perf_sample_data *data, struct pt_regs *regs)
{
	unsigned long flags;

	raw_local_irq_save(flags);
	spile_context_run(event->overflow_handler_context, SPILE_STATE_RUNNING, (unsigned long *)regs);
	raw_local_irq_restore(flags);
}

static bool is_counter(const struct spile_site *site)
{
	return site->probe->kind == SPILE_PROBE_PERF && site->probe->perf.sample == SPILE_SAMPLE_COUNTER;
}

static void release_events(struct perf_event **events)
{
	int cpu;

	for_each_possible_cpu(cpu)
		if (events[cpu])
			perf_event_release_kernel(events[cpu]);
	kfree(events);
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
	case SPILE_SAMPLE_COUNTER:
		break;
	}
	return attr;
}

static int arm_events(struct spile_site *site)
{
	struct perf_event_attr attr = attributes(&site->probe->perf);
	perf_overflow_handler_t handler = is_counter(site) ? NULL : handle_overflow;
	struct perf_event **events;
	int error = 0, cpu;

	if (site->events)
		return 0;
	events = kcalloc(nr_cpu_ids, sizeof(*events), GFP_KERNEL);
	if (!events)
		return -ENOMEM;
	cpus_read_lock();
	for_each_online_cpu(cpu) {
		struct perf_event *event =
			perf_event_create_kernel_counter(&attr, cpu, NULL, handler, site);

		if (IS_ERR(event)) {
			error = PTR_ERR(event);
			break;
		}
		events[cpu] = event;
	}
	cpus_read_unlock();
	if (error)
		release_events(events);
	else	/* Handlers may be reading already. */
		smp_store_release(&site->events, events);
	return error;
}

static void release_site(struct spile_site *site)
{
	release_events(site->events);
	site->events = NULL;
}

static void disarm_events(struct spile_site *const *sites, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		if (!is_counter(sites[i]))
			release_site(sites[i]);
}

void spile_perf_exit(void)
{
	unsigned int i;

	/* The sites may be there half made. */
	for (i = 0; i < spile_script.probe_count; i++)
		if (spile_sites[i].probe && is_counter(&spile_sites[i]) && spile_sites[i].events)
			release_site(&spile_sites[i]);
}

/* What this CPU has counted; 0 on one that has no such event. As perf_event_read_local() of kernel/events/core.c,
 * which modules cannot call. */
spile_long spile_fn___perf_counter(struct spile_context *c, spile_long probe)
{
	struct perf_event **events = smp_load_acquire(&spile_sites[probe].events);
	struct perf_event *event;
	spile_long count = 0;
	unsigned long flags;
	int cpu;

	raw_local_irq_save(flags);
	cpu = raw_smp_processor_id();
	event = events ? events[cpu] : NULL;
	if (event) {
		if (event->oncpu == cpu)
			event->pmu->read(event);
		count = local64_read(&event->count);
	}
	raw_local_irq_restore(flags);
	return count;
}

const struct spile_family spile_perf_family = {
	.by = SPILE_BY_PERF,
	.arm = arm_events,
	.disarm = disarm_events,
};
