// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A handler reads only resident memory, because it must not sleep. The task that hits a probe in
 * a program may sleep before its handler runs. So the memory that the handler is going to read
 * is read first, by code that does nothing else (spile_probe.ahead). If a page is not resident,
 * it is faulted in, and that code starts again.
 *
 * The kernel holds the probe's lock meanwhile, so its removal waits for this. So memory that
 * some user may provide when he likes, or never, is not faulted in (page_in.c).
 */
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/irqflags.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>

#include "context.h"
#include "page_in.h"
#include "run.h"
#include "session.h"
#include "site.h"
#include "uprobe.h"

enum {
	MOST_FAULTS = 32,		/* pages for one hit */
	LOCK_TRIES = 200,		/* half a millisecond each */
};

/* Runs spile_probe.ahead. Returns the address that could not be read, or 0. */
static unsigned long look_ahead(struct spile_site *site, void (*ahead)(struct spile_context *c),
				unsigned long slide, unsigned long *regs, char *entry,
				unsigned long *bytes)
{
	struct spile_cpu *cpu;
	struct spile_context *c;
	unsigned long flags, fault = 0;

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
		fault = cpu->user_fault;
		*bytes = cpu->user_fault_bytes;
		/* No error is set, as between runs. */
		c->error = SPILE_OK;
		c->filtered = 0;
		c->stale = 0;
		c->next = 0;
		c->depth = 0;
		c->frame = cpu->frame;
		cpu->asked = 0;
		/* Compiler only: the last use is over before NMIs see that it is free. */
		barrier();
		WRITE_ONCE(c->busy, 0);
	}
	raw_local_irq_restore(flags);
	return fault;
}

/* Another thread may hold the lock while it waits for such a page. */
static bool lock_maps(struct mm_struct *mm)
{
	unsigned int tries;

	for (tries = 0; tries < LOCK_TRIES; tries++) {
		if (mmap_read_trylock(mm))
			return true;
		if (READ_ONCE(spile_session_state) != SPILE_STATE_RUNNING ||
		    fatal_signal_pending(current))
			return false;
		usleep_range(300, 500);
	}
	return false;
}

static bool page_in(unsigned long address)
{
	unsigned int tries = 0;
	int error;

	do {
		if (!lock_maps(current->mm))
			return false;
		error = spile_page_in(address, 0);
	} while (error == -EAGAIN && ++tries < MOST_FAULTS);
	return !error;
}

void spile_fault_in(struct spile_site *site, void (*ahead)(struct spile_context *c),
		    unsigned long slide, unsigned long *regs, char *entry)
{
	unsigned int i;

	for (i = 0; i < MOST_FAULTS; i++) {
		unsigned long bytes = 1;
		unsigned long fault = look_ahead(site, ahead, slide, regs, entry, &bytes);

		if (!fault || !page_in(fault) || !page_in(fault + bytes - 1))
			return;
		atomic_long_inc(&site->uprobe.faulted_in);
	}
}
