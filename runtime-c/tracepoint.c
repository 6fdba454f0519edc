// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Probes at tracepoints. The kernel calls the registered function with the site and the
 * tracepoint's arguments, each a word; the handler's registers are an array of them.
 *
 * No header of the tracepoint is needed: the compiler knows its prototype, and the kernel finds
 * it by name.
 */
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

#include "context.h"
#include "family.h"
#include "features.h"
#include "module_notifier.h"
#include "owner.h"
#include "run.h"
#include "session.h"
#include "site.h"

enum { MOST_ARGUMENTS = 12 };	/* the same as in the compiler (probe/tracepoint.rs) */

/*
 * Any context. Those of system calls are called with preemption on since
 * "tracing: Allow system call tracepoints to handle page faults", 6.13.
 */
static __always_inline void handle_event(struct spile_site *site, unsigned long *arguments)
{
	if (spile_owner_ignores_current())
		return;
	spile_run_site(site, arguments);
}

/* A function for each number of arguments, because only passed arguments may be read. */
#define W unsigned long
#define TAKES(count, parameters, names) \
	static void take_##count parameters \
	{ \
		unsigned long arguments[] = names; \
		handle_event(data, arguments); \
	}
#define NAMES(...) { __VA_ARGS__ }
TAKES(0, (void *data), NAMES(0))
TAKES(1, (void *data, W a), NAMES(a))
TAKES(2, (void *data, W a, W b), NAMES(a, b))
TAKES(3, (void *data, W a, W b, W c), NAMES(a, b, c))
TAKES(4, (void *data, W a, W b, W c, W d), NAMES(a, b, c, d))
TAKES(5, (void *data, W a, W b, W c, W d, W e), NAMES(a, b, c, d, e))
TAKES(6, (void *data, W a, W b, W c, W d, W e, W f), NAMES(a, b, c, d, e, f))
TAKES(7, (void *data, W a, W b, W c, W d, W e, W f, W g), NAMES(a, b, c, d, e, f, g))
TAKES(8, (void *data, W a, W b, W c, W d, W e, W f, W g, W h), NAMES(a, b, c, d, e, f, g, h))
TAKES(9, (void *data, W a, W b, W c, W d, W e, W f, W g, W h, W i),
      NAMES(a, b, c, d, e, f, g, h, i))
TAKES(10, (void *data, W a, W b, W c, W d, W e, W f, W g, W h, W i, W j),
      NAMES(a, b, c, d, e, f, g, h, i, j))
TAKES(11, (void *data, W a, W b, W c, W d, W e, W f, W g, W h, W i, W j, W k),
      NAMES(a, b, c, d, e, f, g, h, i, j, k))
TAKES(12, (void *data, W a, W b, W c, W d, W e, W f, W g, W h, W i, W j, W k, W l),
      NAMES(a, b, c, d, e, f, g, h, i, j, k, l))
#undef NAMES
#undef TAKES
#undef W

static void *const callbacks[] = {
	take_0, take_1, take_2, take_3, take_4, take_5, take_6, take_7,
	take_8, take_9, take_10, take_11, take_12,
};

/* For a handler that only counts, and reads no argument. */
static void take_count(void *data)
{
	spile_event_begins();
	spile_run_counting(data);
	spile_event_ends();
}

/* For a handler that only adds a number to a counter. */
static void take_add(void *data)
{
	spile_event_begins();
	spile_run_adding(data);
	spile_event_ends();
}

static void *callback_of(const struct spile_site *site)
{
	BUILD_BUG_ON(ARRAY_SIZE(callbacks) != MOST_ARGUMENTS + 1);
	if (site->counting && !site->probe->registers && !site->sampled)
		return site->runs == SPILE_RUNS_ADDING ? take_add : take_count;
	return callbacks[min_t(unsigned int, site->probe->tracepoint.arguments, MOST_ARGUMENTS)];
}

static void match(struct tracepoint *tracepoint, void *data)
{
	struct spile_site *site = data;

	if (!strcmp(tracepoint->name, site->probe->tracepoint.name))
		site->tracepoint = tracepoint;
}

static void match_in_module(const struct module *module, struct spile_site *site)
{
	unsigned int i;

	for (i = 0; i < module->num_tracepoints; i++)
		match(tracepoint_ptr_deref(&module->tracepoints_ptrs[i]), site);
}

static int arm_tracepoint(struct spile_site *site)
{
	int target = site->probe->target;

	if (spile_prototypes_are_checked())
		return -EOPNOTSUPP;
	site->tracepoint = NULL;
	if (target < 0 || !spile_script.targets[target].name[0])
		for_each_kernel_tracepoint(match, site);
	else if (spile_modules_of(target))
		match_in_module(spile_modules_of(target), site);
	if (!site->tracepoint)
		return -ENOENT;
	return tracepoint_probe_register(site->tracepoint, callback_of(site), site);
}

static int unregister_callback(struct spile_site *site)
{
	return tracepoint_probe_unregister(site->tracepoint, callback_of(site), site);
}

static void disarm_tracepoints(struct spile_site *const *sites, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		WARN_ON_ONCE(!sites[i]->off && unregister_callback(sites[i]));
	tracepoint_synchronize_unregister();
}

static void turn_tracepoint(struct spile_site *site, bool on)
{
	if (!on)
		WARN_ON_ONCE(unregister_callback(site));
	else if (tracepoint_probe_register(site->tracepoint, callback_of(site), site))
		/* no memory: tried again when the condition is looked at */
		WRITE_ONCE(site->off, true);
}

static bool report_prototypes(const struct spile_site *site, int error)
{
	if (error != -EOPNOTSUPP)
		return false;
	spile_session_emit(
		SPILE_RECORD_WARN,
		"probe %s: refused: this kernel checks the prototypes of callbacks (CONFIG_CFI)",
		site->probe->point);
	return true;
}

const struct spile_family spile_tracepoint_family = {
	.kind = SPILE_PROBE_TRACEPOINT,
	.type = "kernel_trace",
	.may_be_sampled = true,
	.by = SPILE_BY_TRACEPOINT,
	.arm = arm_tracepoint,
	.reports = report_prototypes,
	.disarm = disarm_tracepoints,
	.turn = turn_tracepoint,
};
