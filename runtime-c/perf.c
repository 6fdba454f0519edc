// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perf events and timer.profile: one event on each CPU that is there; those that
 * come get theirs. Handlers run in NMI for hardware events, in hard interrupts for
 * the kernel's own. A counter has no handler: other probes read it, and it stays
 * until the module goes, for they may still run when it is disarmed.
 */
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/mutex.h>
#include <linux/perf_event.h>
#include <linux/printk.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

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

/* site->events, and what is in it, but for what handlers read. */
static DEFINE_MUTEX(events_mutex);

/* CPUs that have gone since their events were made. */
static struct cpumask gone_cpus;

static void follow_cpus(struct work_struct *work);
static DECLARE_WORK(follow_work, follow_cpus);
static int hotplug_state;	/* 0: none. Under events_mutex */

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

static struct perf_event *create_event(struct spile_site *site, int cpu)
{
	struct perf_event_attr attr = attributes(&site->probe->perf);

	return perf_event_create_kernel_counter(&attr, cpu, NULL, is_counter(site) ? NULL : handle_overflow, site);
}

/*
 * Events on all CPUs that are there and have none. Without cpus_read_lock(), which
 * making one takes itself: a CPU that goes meanwhile is refused with ENODEV.
 */
static int create_events(struct spile_site *site, struct perf_event **events)
{
	int cpu;

	for_each_online_cpu(cpu) {
		struct perf_event *event;

		if (events[cpu])
			continue;
		event = create_event(site, cpu);
		if (!IS_ERR(event))
			WRITE_ONCE(events[cpu], event);
		else if (PTR_ERR(event) != -ENODEV || cpu_online(cpu))
			return PTR_ERR(event);
	}
	return 0;
}

static bool has_events(const struct spile_site *site)
{
	return site->probe && site->probe->kind == SPILE_PROBE_PERF && site->events;
}

/* A CPU that went has taken its events out of use for good; when it is back it wants others. */
static void follow_cpus(struct work_struct *work)
{
	unsigned int i;
	int cpu;

	(void)work;
	mutex_lock(&events_mutex);
	for_each_possible_cpu(cpu) {
		if (!cpumask_test_and_clear_cpu(cpu, &gone_cpus))
			continue;
		for (i = 0; i < spile_script.probe_count; i++)
			if (has_events(&spile_sites[i]) && spile_sites[i].events[cpu]) {
				struct perf_event *event = spile_sites[i].events[cpu];

				/* What handlers read is freed after a grace period. */
				WRITE_ONCE(spile_sites[i].events[cpu], NULL);
				perf_event_release_kernel(event);
			}
	}
	for (i = 0; i < spile_script.probe_count; i++)
		if (has_events(&spile_sites[i]) && create_events(&spile_sites[i], spile_sites[i].events))
			pr_warn("%s: a CPU that came has no event for probe %s\n", spile_script.name,
				spile_sites[i].probe->point);
	mutex_unlock(&events_mutex);
}

/* Under the lock that making and releasing an event may take: a work item does that. */
static int cpu_comes(unsigned int cpu)
{
	(void)cpu;
	schedule_work(&follow_work);
	return 0;
}

static int cpu_goes(unsigned int cpu)
{
	cpumask_set_cpu(cpu, &gone_cpus);
	return 0;
}

static int arm_events(struct spile_site *site)
{
	struct perf_event **events;
	int error = 0;

	if (site->events)
		return 0;
	events = kcalloc(nr_cpu_ids, sizeof(*events), GFP_KERNEL);
	if (!events)
		return -ENOMEM;
	mutex_lock(&events_mutex);
	if (!hotplug_state) {
		error = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN, "spile/perf:online", cpu_comes, cpu_goes);
		if (error > 0)
			hotplug_state = error;
		error = min(error, 0);
	}
	if (!error)
		error = create_events(site, events);
	if (error)
		release_events(events);
	else	/* Handlers may be reading already. */
		smp_store_release(&site->events, events);
	mutex_unlock(&events_mutex);
	return error;
}

static void release_site(struct spile_site *site)
{
	struct perf_event **events;

	mutex_lock(&events_mutex);
	events = site->events;
	site->events = NULL;
	release_events(events);
	mutex_unlock(&events_mutex);
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

	if (hotplug_state)
		cpuhp_remove_state_nocalls(hotplug_state);
	cancel_work_sync(&follow_work);
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
	event = events ? READ_ONCE(events[cpu]) : NULL;
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
