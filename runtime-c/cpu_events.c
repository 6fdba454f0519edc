// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Events on each CPU, which follow CPUs that come and go.
 */
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/mutex.h>
#include <linux/perf_event.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "cpu_events.h"
#include "family.h"
#include "session.h"

/* Protects site->events and its entries, except that handlers read them without it. */
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

/*
 * Creates events on all online CPUs that have none. Called without cpus_read_lock(), which
 * creating an event takes; for a CPU that goes offline meanwhile it fails with ENODEV.
 */
static int create_events(struct spile_site *site, struct perf_event **events)
{
	int cpu;

	for_each_online_cpu(cpu) {
		struct perf_event *event;

		if (events[cpu])
			continue;
		event = site->family->create_event(site, cpu);
		if (!IS_ERR(event))
			WRITE_ONCE(events[cpu], event);
		else if (PTR_ERR(event) != -ENODEV || cpu_online(cpu))
			return PTR_ERR(event);
	}
	return 0;
}

static bool has_events(const struct spile_site *site)
{
	return site->family && site->family->create_event && site->events;
}

/* Reports that hits on this CPU are not counted. */
static void report_missing(const struct spile_site *site, int error)
{
	if (READ_ONCE(spile_session_state) == SPILE_STATE_RUNNING)
		spile_session_emit(
			SPILE_RECORD_WARN,
			"probe %s has no event on a CPU that has come (rc %d): what happens there is not seen",
			site->probe->point, error);
}

/*
 * Events of a CPU that went offline cannot be used again; when it is back, create new ones.
 */
static void follow_cpus(struct work_struct *work)
{
	unsigned int i;
	int cpu, error;

	(void)work;
	mutex_lock(&events_mutex);
	for_each_possible_cpu(cpu) {
		if (!cpumask_test_and_clear_cpu(cpu, &gone_cpus))
			continue;
		for (i = 0; i < spile_script.probe_count; i++)
			if (has_events(&spile_sites[i]) && spile_sites[i].events[cpu]) {
				struct perf_event *event = spile_sites[i].events[cpu];

				/*
				 * perf frees an event after a grace period; pairs with
				 * READ_ONCE() in handlers.
				 */
				WRITE_ONCE(spile_sites[i].events[cpu], NULL);
				perf_event_release_kernel(event);
			}
	}
	for (i = 0; i < spile_script.probe_count; i++) {
		if (!has_events(&spile_sites[i]))
			continue;
		error = create_events(&spile_sites[i], spile_sites[i].events);
		if (error)
			report_missing(&spile_sites[i], error);
	}
	mutex_unlock(&events_mutex);
}

/*
 * This runs under a lock that creating and releasing an event may take, so a work item does
 * that.
 */
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

int spile_cpu_events_make(struct spile_site *site)
{
	struct perf_event **events = kcalloc(nr_cpu_ids, sizeof(*events), GFP_KERNEL);
	int error = 0;

	if (!events)
		return -ENOMEM;
	mutex_lock(&events_mutex);
	if (!hotplug_state) {
		error = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN, "spile/perf:online",
						  cpu_comes, cpu_goes);
		if (error > 0)
			hotplug_state = error;
		error = min(error, 0);
	}
	if (!error)
		error = create_events(site, events);
	if (error)
		release_events(events);
	else
		/*
		 * Release: the array's contents; pairs with the acquire in
		 * spile_fn___perf_counter().
		 */
		smp_store_release(&site->events, events);
	mutex_unlock(&events_mutex);
	return error;
}

void spile_cpu_events_release(struct spile_site *site)
{
	struct perf_event **events;

	mutex_lock(&events_mutex);
	events = site->events;
	site->events = NULL;
	release_events(events);
	mutex_unlock(&events_mutex);
}

void spile_cpu_events_exit(void)
{
	if (hotplug_state)
		cpuhp_remove_state_nocalls(hotplug_state);
	cancel_work_sync(&follow_work);
}
