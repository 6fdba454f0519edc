// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A handler reads only resident memory, because it must not sleep. The task that hits a probe in
 * a program may sleep before its handler runs. So a page that the handler needs is faulted in
 * there:
 *
 * SPILE_PAGING_RESTART: the handler reads all memory of the process before it has any effect. If a
 * page is missing, it ends as if it had not run (SPILE_E_RESTART), and runs again. What it reads
 * costs nothing more where all pages are there.
 *
 * SPILE_PAGING_AHEAD: the memory that the handler is going to read is read first, by code that does
 * nothing else (spile_probe.ahead). If a page is missing, that code runs again.
 *
 * The kernel holds the probe's lock meanwhile, so its removal waits for this. So memory that
 * some user may provide when he likes, or never, is not faulted in (page_in.c).
 */
#include <linux/atomic.h>
#include <linux/irqflags.h>
#include <linux/mm.h>
#include <linux/sched.h>

#include "context.h"
#include "page_in.h"
#include "run.h"
#include "session.h"
#include "site.h"
#include "uprobe.h"

enum { MOST_FAULTS = 32 };		/* pages for one hit */

/* What could not be read; no bytes: nothing. */
struct missing {
	unsigned long address;
	unsigned long bytes;
};

/* Runs spile_probe.ahead. */
static struct missing look_ahead(struct spile_site *site, void (*ahead)(struct spile_context *c),
				 unsigned long slide, unsigned long *regs, char *entry)
{
	struct missing missing = {};
	struct spile_cpu *cpu;
	struct spile_context *c;
	unsigned long flags;

	raw_local_irq_save(flags);
	cpu = spile_this_cpu();
	c = &cpu->context;
	if (READ_ONCE(spile_session_state) == SPILE_STATE_RUNNING && c->busy != 1 &&
	    spile_stack_suffices(site)) {
		WRITE_ONCE(c->busy, 1);
		/* Compiler only: NMIs of this CPU see busy before the context is used. */
		barrier();
		c->probe = site->probe;
		c->regs = regs;
		c->entry = entry;
		c->begun = spile_begun;
		cpu->program_slide = slide;
		cpu->user_fault = 0;
		ahead(c);
		if (cpu->user_fault)
			missing = (struct missing){ cpu->user_fault, cpu->user_fault_bytes };
		/* No error is set, as between runs. */
		c->error = SPILE_OK;
		c->filtered = 0;
		spile_forget_run(cpu);
		c->next = 0;
		c->depth = 0;
		c->frame = cpu->frame;
		cpu->asked = 0;
		/* Compiler only: the last use is over before NMIs see that it is free. */
		barrier();
		WRITE_ONCE(c->busy, 0);
	}
	raw_local_irq_restore(flags);
	return missing;
}

/* Whether it is there now. */
static bool fault_in(struct spile_site *site, unsigned long address, unsigned long bytes)
{
	unsigned long last = address + bytes - 1;

	if (last < address)
		return false;
	for (;; address = (address & PAGE_MASK) + PAGE_SIZE) {
		if (!spile_page_in_soon(address, 0, true))
			return false;
		if ((address & PAGE_MASK) == (last & PAGE_MASK))
			break;
	}
	atomic_long_inc(&site->uprobe.faulted_in);
	return true;
}

/* Runs the handler once. `run`: it may end with SPILE_E_RESTART, and has to be repeated; or NULL. */
static __always_inline bool run_once(struct spile_site *site, unsigned int kind, bool again,
				     unsigned long slide, unsigned long *regs, char *entry,
				     struct spile_restarting *run)
{
	struct spile_cpu *cpu;
	bool fine = true;

	preempt_disable();
	cpu = spile_this_cpu();
	cpu->program_slide = slide;
	if (run) {
		run->missing_bytes = 0;
		cpu->restarting = run;
	}
	/* Sampling has let the hit pass. */
	if (kind || again)
		fine = spile_run_hit(site, kind, regs, entry);
	else
		spile_run_site(site, regs);
	if (run) {
		/* Other hits of this task may have registers at the same address. */
		cpu->restarting = NULL;
		/* It is not one that its condition turned away, either. */
		if (unlikely(run->missing_bytes))
			local_dec(&spile_counts_of(cpu, site)->filtered);
	}
	preempt_enable();
	return fine;
}

static bool run_restarting(struct spile_site *site, unsigned int kind, unsigned long slide,
			   unsigned long *regs, char *entry)
{
	struct spile_restarting run;
	unsigned long last = 0, last_bytes = 0;
	unsigned int i;

	/* Not all of it: this is on the way of each hit. */
	run.regs = regs;
	run.hopeless_count = 0;
	for (i = 0; i < MOST_FAULTS; i++) {
		bool fine = run_once(site, kind, i, slide, regs, entry, &run);

		if (likely(!run.missing_bytes))
			return fine;
		/* The same again: the page is there, but cannot be read (protection keys). */
		if ((run.missing != last || run.missing_bytes > last_bytes) &&
		    fault_in(site, run.missing, run.missing_bytes)) {
			last = run.missing;
			last_bytes = run.missing_bytes;
			continue;
		}
		if (run.hopeless_count == ARRAY_SIZE(run.hopeless))
			break;
		run.hopeless[run.hopeless_count++] = run.missing;
	}
	/* What is still missing is an error. */
	return run_once(site, kind, true, slide, regs, entry, NULL);
}

bool spile_run_paging(struct spile_site *site, unsigned int kind, unsigned long slide,
		      unsigned long *regs, char *entry)
{
	const struct spile_probe *probe = site->probe;
	bool entering = kind == SPILE_RUN_ENTERING;
	void (*ahead)(struct spile_context *c) = entering ? probe->entry_ahead : probe->ahead;
	unsigned int i;

	if ((entering ? probe->entry_paging : probe->paging) == SPILE_PAGING_RESTART)
		return run_restarting(site, kind, slide, regs, entry);
	for (i = 0; i < MOST_FAULTS; i++) {
		struct missing missing = look_ahead(site, ahead, slide, regs, entry);

		if (!missing.bytes || !fault_in(site, missing.address, missing.bytes))
			break;
	}
	return run_once(site, kind, false, slide, regs, entry, NULL);
}
