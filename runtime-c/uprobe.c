// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Probes at an instruction of a program: uprobes. The kernel registers them by a file's inode
 * and an offset, so they are in every process that maps the file, now or later.
 *
 * Their handlers are called in the task that hit them, with interrupts and preemption on, before
 * the probed instruction. The task may sleep there, so memory that the handler reads is paged in
 * first (fault_in.c).
 */
#include <linux/err.h>
#include <linux/preempt.h>
#include <linux/ptrace.h>
#include <linux/uprobes.h>

#include <asm/desc.h>
#include <asm/fsgsbase.h>

#include "builtins.h"
#include "context.h"
#include "family.h"
#include "features.h"
#include "held_maps.h"
#include "original_return.h"
#include "run.h"
#include "site.h"
#include "uprobe.h"

/* Selects the processes that get the breakpoint; others are not slowed down. */
static SPILE_UPROBE_FILTER(is_for_mm)
{
	struct spile_site *site = container_of(self, struct spile_site, uprobe.consumer);

	return spile_follows_mm(site->probe->uprobe.pid, mm);
}

int spile_uprobe_unwanted(const struct spile_probe *probe)
{
	return spile_follows_mm(probe->uprobe.pid, current->mm) ? 0 : UPROBE_HANDLER_REMOVE;
}

static int handle_program_hit(struct uprobe_consumer *self, struct pt_regs *regs
			      SPILE_UPROBE_DATA)
{
	struct spile_site *site = container_of(self, struct spile_site, uprobe.consumer);
	const struct spile_probe *probe = site->probe;
	unsigned long slide = instruction_pointer(regs) - probe->uprobe.address;

	if (!spile_follows_current(probe->uprobe.pid))
		return spile_uprobe_unwanted(probe);
	spile_before_run();
	if (probe->paging) {
		spile_run_paging(site, 0, slide, (unsigned long *)regs, NULL);
		return 0;
	}
	preempt_disable();
	spile_this_cpu()->program_slide = slide;
	spile_run_site(site, (unsigned long *)regs);
	preempt_enable();
	return 0;
}

int spile_uprobe_register(struct spile_site *site)
{
	const struct spile_uprobe *at = &site->probe->uprobe;
	struct inode *inode = spile_program_inode(at->program);
	int error;

	if (IS_ERR(inode))
		return PTR_ERR(inode);
	if (spile_maps_are_held(inode))
		return -EBUSY;
	if (spile_follows_some(at->pid))
		site->uprobe.consumer.filter = is_for_mm;
	error = spile_uprobe_add(inode, at->offset, at->counted, &site->uprobe.consumer,
				 &site->uprobe.handle);
	site->uprobe.inode = inode;
	return error;
}

static int arm_uprobe(struct spile_site *site)
{
	memset(&site->uprobe, 0, sizeof(site->uprobe));
	site->uprobe.consumer.handler = handle_program_hit;
	return spile_uprobe_register(site);
}

static void remove_uprobe(struct spile_site *site)
{
	spile_uprobe_remove(site->uprobe.inode, site->probe->uprobe.offset,
			    &site->uprobe.consumer, site->uprobe.handle);
}

void spile_uprobe_turn(struct spile_site *site, bool on)
{
	/* no memory, or locked mappings: it stays as it is, and is tried again (condition.c) */
	if (on) {
		if (spile_uprobe_register(site))
			WRITE_ONCE(site->off, true);
	} else if (spile_maps_are_held(site->uprobe.inode)) {
		WRITE_ONCE(site->off, false);
	} else {
		remove_uprobe(site);
		/* Required before the consumer may be registered again. */
		spile_uprobe_wait();
	}
}

bool spile_uprobe_detach(struct spile_site *site)
{
	if (site->off)
		return true;
	if (spile_maps_delay(site->uprobe.inode, site->probe->point))
		return false;
	remove_uprobe(site);
	return true;
}

void spile_uprobes_disarm(struct spile_site *const *sites, unsigned int count)
{
	unsigned int i;

	spile_uprobe_wait();
	for (i = 0; i < count; i++) {
		sites[i]->return_missed += atomic_long_xchg(&sites[i]->uprobe.unsaved, 0);
		sites[i]->faulted_in += atomic_long_xchg(&sites[i]->uprobe.faulted_in, 0);
	}
}

void spile_uprobe_missed(const struct spile_site *site, struct spile_counters *counters)
{
	counters->return_misses += atomic_long_read(&site->uprobe.unsaved);
	counters->faulted_in += atomic_long_read(&site->uprobe.faulted_in);
}

const struct spile_family spile_uprobe_family = {
	.kind = SPILE_PROBE_UPROBE,
	.type = "uprobe",
	.may_be_sampled = true,
	.last_runs_first = true,
	.by = SPILE_BY_UPROBE,
	.arm = arm_uprobe,
	.reports = spile_maps_report,
	.turn = spile_uprobe_turn,
	.detach = spile_uprobe_detach,
	.disarm = spile_uprobes_disarm,
	.missed = spile_uprobe_missed,
};

spile_long spile_fn___program_address(struct spile_context *c, spile_long address)
{
	return address + spile_cpu_of(c)->program_slide;
}

spile_long spile_fn___original_return(struct spile_context *c, spile_long at, spile_long found)
{
	return spile_original_return(at, found);
}

/*
 * A 32-bit program's gs, which is not the kernel's, selects one of the segments that the thread
 * has set (set_thread_area()). 0: none of them.
 */
static unsigned long narrow_thread_pointer(void)
{
	unsigned int selector, number;

	savesegment(gs, selector);
	/* One of the LDT (modify_ldt()) is none of them. */
	if (selector & SEGMENT_TI_MASK)
		return 0;
	number = (selector >> 3) - GDT_ENTRY_TLS_MIN;
	if (number >= GDT_ENTRY_TLS_ENTRIES)
		return 0;
	return get_desc_base(&current->thread.tls_array[number]);
}

/* The kernel does not change the register while it runs for the task. */
spile_long spile_fn___thread_pointer(struct spile_context *c)
{
	if (!user_64bit_mode(task_pt_regs(current))) {
		unsigned long pointer = narrow_thread_pointer();

		if (!pointer)
			spile_fail(c, SPILE_E_READ_FAULT, 0);
		return pointer;
	}
	return x86_fsbase_read_cpu();
}
