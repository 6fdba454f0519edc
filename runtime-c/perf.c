// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perf events and timer.profile: one event on each CPU (cpu_events.h). Handlers run in NMI
 * for hardware events, in hard interrupts for the kernel's own. A counter has no handler:
 * other probes read it, and it stays until the module is unloaded, because they may still
 * run when it is disarmed.
 */
#include <linux/irqflags.h>
#include <linux/perf_event.h>
#include <linux/rcupdate.h>

#include "builtins.h"
#include "context.h"
#include "cpu_events.h"
#include "family.h"
#include "session.h"
#include "site.h"

static void handle_overflow(struct perf_event *event, struct perf_sample_data *data,
			    struct pt_regs *regs)
{
	unsigned long flags;

	raw_local_irq_save(flags);
	spile_context_run(event->overflow_handler_context, SPILE_STATE_RUNNING,
			  (unsigned long *)regs);
	raw_local_irq_restore(flags);
}

static bool is_counter(const struct spile_site *site)
{
	return site->probe->kind == SPILE_PROBE_PERF &&
	       site->probe->perf.sample == SPILE_SAMPLE_COUNTER;
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

/* TRACE_FN of kernel/trace/trace.h: the first kind of entry since there are any. */
#define SPILE_EVERY_FUNCTION 1

static struct perf_event *create_overflow_event(struct spile_site *site, int cpu)
{
	struct perf_event_attr attr = attributes(&site->probe->perf);
	struct perf_event *event;

	/*
	 * ftrace:function: while it is there, each call of each function of the kernel looks at the
	 * events of all CPUs, outside of any handler.
	 */
	if (attr.type == PERF_TYPE_TRACEPOINT && attr.config == SPILE_EVERY_FUNCTION)
		return ERR_PTR(-EOPNOTSUPP);
	event = perf_event_create_kernel_counter(&attr, cpu, NULL,
						 is_counter(site) ? NULL : handle_overflow, site);
	/* Reading a device's counter takes its driver's locks, which a hit may have interrupted. */
	if (!IS_ERR(event) && is_counter(site) &&
	    event->pmu->task_ctx_nr == perf_invalid_context) {
		perf_event_release_kernel(event);
		return ERR_PTR(-EOPNOTSUPP);
	}
	return event;
}

static int arm_events(struct spile_site *site)
{
	return site->events ? 0 : spile_cpu_events_make(site);
}

static void disarm_events(struct spile_site *const *sites, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		if (!is_counter(sites[i]))
			spile_cpu_events_release(sites[i]);
	/* Hits of software events run with interrupts on: they may have begun before. */
	synchronize_rcu();
}

static void release_counters(void)
{
	unsigned int i;

	for (i = 0; i < spile_script.probe_count; i++)
		if (is_counter(&spile_sites[i]) && spile_sites[i].events)
			spile_cpu_events_release(&spile_sites[i]);
}

/*
 * The count of this CPU; 0 if it has no such event. As perf_event_read_local() of
 * kernel/events/core.c, which is not exported.
 */
spile_long spile_fn___perf_counter(struct spile_context *c, spile_long probe)
{
	struct perf_event **events, *event;
	spile_long count = 0;
	unsigned long flags;
	int cpu;

	if ((spile_ulong)probe >= spile_script.probe_count || !is_counter(&spile_sites[probe]))
		return 0;
	/* Acquire: pairs with the release in spile_cpu_events_make(). */
	events = smp_load_acquire(&spile_sites[probe].events);
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

static bool report_device(const struct spile_site *site, int error)
{
	if (error != -EOPNOTSUPP || !is_counter(site))
		return false;
	spile_session_emit(
		SPILE_RECORD_WARN,
		"probe %s: refused: the counter is of a device, and reading it at a hit would wait for locks of its driver; it reads as 0",
		site->probe->point);
	return true;
}

const struct spile_family spile_perf_family = {
	.kind = SPILE_PROBE_PERF,
	.type = "perf",
	.may_be_sampled = true,
	.arms_last = true,
	.exit = release_counters,
	.create_event = create_overflow_event,
	.by = SPILE_BY_PERF,
	.arm = arm_events,
	.reports = report_device,
	.disarm = disarm_events,
};
