// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Probes at the return of a program's function: the kernel hooks the return of a call whose
 * entry hits a uprobe. Values that the script needs from the entry are saved by the entry
 * handler until the return, by task and stack pointer.
 */
#include <linux/preempt.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/uprobes.h>

#include "context.h"
#include "exceptions.h"
#include "family.h"
#include "features.h"
#include "held_maps.h"
#include "optional.h"
#include "run.h"
#include "site.h"
#include "uprobe.h"

enum {
	MOST_TAKEN = 64		/* bytes of arguments that a function may take off the stack */
};

/* Bytes of the return address, which a return takes off the stack. */
static unsigned long return_bytes(struct pt_regs *regs)
{
	return user_64bit_mode(regs) ? 8 : 4;
}

/* Whether the kernel will not hook the return of this call: prepare_uretprobe(). */
static bool is_too_deep(void)
{
	const struct uprobe_task *pending = current->utask;

	return pending && pending->depth >= MAX_URETPROBE_DEPTH;
}

/* As spile_run_paging(). */
static __always_inline bool run_kind(struct spile_site *site, unsigned int kind,
				     unsigned long slide, unsigned long *regs, char *entry)
{
	const struct spile_probe *probe = site->probe;
	bool fine = true;

	if (kind == SPILE_RUN_ENTERING ? probe->entry_paging : probe->paging)
		return spile_run_paging(site, kind, slide, regs, entry);
	preempt_disable();
	spile_this_cpu()->program_slide = slide;
	if (kind)
		fine = spile_run_hit(site, kind, regs, entry);
	else
		spile_run_site(site, regs);
	preempt_enable();
	return fine;
}

static int handle_program_entry(struct uprobe_consumer *self, struct pt_regs *regs
				SPILE_UPROBE_DATA)
{
	struct spile_site *site = container_of(self, struct spile_site, uprobe.consumer);
	const struct spile_probe *probe = site->probe;
	unsigned long slide = instruction_pointer(regs) - probe->uprobe.address;
	struct spile_saved_entry *saved;

	if (!spile_follows_current(probe->uprobe.pid))
		return spile_uprobe_unwanted(probe);
	/* Without values of the entry the return is passed over. */
	if (!probe->entry_handler || READ_ONCE(site->switched_off))
		return 0;
	/* What is saved for a return that is not seen takes a place from others. */
	if (is_too_deep())
		return 0;
	spile_before_run();
	saved = spile_uprobe_entry_take(site, kernel_stack_pointer(regs));
	if (!saved) {
		atomic_long_inc(&site->uprobe.unsaved);
		return 0;
	}
	if (!run_kind(site, SPILE_RUN_ENTERING, slide, (unsigned long *)regs,
		      spile_uprobe_entry_data(saved)))
		spile_uprobe_entry_forget(saved);
	return 0;
}

/*
 * What the call's entry has saved. A 32-bit function may also take its arguments off the
 * stack (ret $4, as those that return a struct do); how many bytes these are is not known.
 */
static struct spile_saved_entry *find_saved(const struct spile_site *site, struct pt_regs *regs)
{
	unsigned long sp = kernel_stack_pointer(regs) - return_bytes(regs), taken;
	struct spile_saved_entry *saved = spile_uprobe_entry_find(site, sp);

	if (user_64bit_mode(regs))
		return saved;
	for (taken = 4; !saved && taken <= MOST_TAKEN; taken += 4)
		saved = spile_uprobe_entry_find(site, sp - taken);
	return saved;
}

static int handle_program_return(struct uprobe_consumer *self, unsigned long function,
				 struct pt_regs *regs SPILE_UPROBE_DATA)
{
	struct spile_site *site = container_of(self, struct spile_site, uprobe.consumer);
	const struct spile_probe *probe = site->probe;
	unsigned long slide = function - probe->uprobe.address;
	struct spile_saved_entry *saved = NULL;
	char *data = NULL;

	if (probe->entry_handler) {
		saved = find_saved(site, regs);
		/* The entry was missed, or its process is not followed. */
		if (!saved)
			return 0;
		data = spile_uprobe_entry_data(saved);
	}
	if (!spile_follows_current(probe->uprobe.pid)) {
		if (saved)
			spile_uprobe_entry_forget(saved);
		return 0;
	}
	spile_before_run();
	if (!saved) {
		run_kind(site, 0, slide, (unsigned long *)regs, NULL);
		return 0;
	}
	run_kind(site, SPILE_RUN_RETURNING, slide, (unsigned long *)regs, data);
	spile_uprobe_entry_forget(saved);
	return 0;
}

static unsigned int armed_returns;	/* under spile_session.lock */

static int arm_uretprobe(struct spile_site *site)
{
	int error;

	/* An exception may pass as soon as the first one is armed. */
	spile_call_if_there(spile_exceptions_arm);
	memset(&site->uprobe, 0, sizeof(site->uprobe));
	/* The registers that the probe names are those of the entry: at the return there are all. */
	if (site->runs == SPILE_RUNS_COUNTING)
		site->runs = SPILE_RUNS_COUNTING_BY;
	/* Switched off by its condition. */
	if (site->runs_sampled == SPILE_RUNS_COUNTING)
		site->runs_sampled = SPILE_RUNS_COUNTING_BY;
	if (site->probe->entry_handler || spile_follows_some(site->probe->uprobe.pid))
		site->uprobe.consumer.handler = handle_program_entry;
	site->uprobe.consumer.ret_handler = handle_program_return;
	error = spile_uprobe_register(site);
	if (!error)
		armed_returns++;
	return error;
}

static bool detach_uretprobe(struct spile_site *site)
{
	if (armed_returns == 1 && !spile_call_or(true, spile_exceptions_detach))
		return false;
	if (!spile_uprobe_detach(site))
		return false;
	armed_returns--;
	return true;
}

static int init_uretprobes(void)
{
	return spile_uprobe_entry_init() ?: spile_call_or(0, spile_exceptions_init);
}

static void exit_uretprobes(void)
{
	spile_call_if_there(spile_exceptions_exit);
	spile_uprobe_entry_exit();
}

const struct spile_family spile_uretprobe_family = {
	.kind = SPILE_PROBE_URETPROBE,
	.with = &spile_uprobe_family,
	.type = "uprobe",
	.last_runs_first = true,
	.by = SPILE_BY_URETPROBE,
	.init = init_uretprobes,
	.exit = exit_uretprobes,
	.arm = arm_uretprobe,
	.reports = spile_maps_report,
	.turn = spile_uprobe_turn,
	.detach = detach_uretprobe,
	.disarm = spile_uprobes_disarm,
	.missed = spile_uprobe_missed,
};
