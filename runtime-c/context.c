// SPDX-License-Identifier: GPL-2.0-or-later
/* Per-CPU contexts, and the parts common to all handler runs. */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/smp.h>
#include <linux/vmalloc.h>

#include "budget.h"
#include "context.h"
#include "features.h"
#include "run.h"
#include "session.h"
#include "stack.h"

DEFINE_PER_CPU(struct spile_cpu *, spile_cpus);

bool spile_context_run(struct spile_site *site, enum spile_state state, unsigned long *regs)
{
	if (unlikely(site->sampled) && spile_budget_skips(site))
		return false;
	return spile_run(site, state, 0, regs, NULL);
}

spile_long spile_counter(unsigned int index, spile_long base)
{
	spile_ulong sum = base;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu(spile_cpus, cpu)->context.counters[index]);
	return sum;
}

void spile_counter_set(unsigned int index, spile_long *base, spile_long value)
{
	/*
	 * Only its own CPU writes a counter, so the base is set to the value minus the
	 * counters.
	 */
	*base = (spile_ulong)value - (spile_ulong)spile_counter(index, 0);
}

static struct spile_cpu *claim(bool soon)
{
	enum { TRIES = 100 };
	struct spile_cpu *cpu;
	unsigned int tries;

	/*
	 * A task that can be here is not inside a handler, and a handler in an
	 * interrupt ends before we go on: the context is free, unless a begin or
	 * end probe lets others run for a while (actions.c).
	 */
	for (tries = 0;; tries++) {
		preempt_disable();
		cpu = spile_this_cpu();
		if (likely(!READ_ONCE(cpu->context.busy)))
			break;
		preempt_enable();
		if (soon && tries == TRIES)
			return NULL;
		usleep_range(100, 1000);
	}
	WRITE_ONCE(cpu->context.busy, 1);
	/*
	 * Compiler only: the claim comes before the use; pairs with spile_run() in an interrupt
	 * on this CPU.
	 */
	barrier();
	cpu->context.probe = NULL;
	cpu->context.error = SPILE_OK;
	return cpu;
}

struct spile_cpu *spile_context_claim(void)
{
	return claim(false);
}

struct spile_cpu *spile_context_claim_soon(void)
{
	return claim(true);
}

void spile_context_release(struct spile_cpu *cpu)
{
	/* Compiler only: the use comes before the release; pairs with spile_run() as above. */
	barrier();
	WRITE_ONCE(cpu->context.busy, 0);
	preempt_enable();
}

static void is_interrupted(void *unused)
{
}

/*
 * Its last functions run with interrupts off, after it has told RCU that it goes. Nothing runs there
 * for as long as this waits; a handler that has ended in an oops stays busy for ever.
 */
static void wait_for_cpu_that_goes(int cpu)
{
	enum { GOES_TRIES = 10000 };
	unsigned int tries;

	for (tries = 0; tries < GOES_TRIES; tries++) {
		if (!READ_ONCE(per_cpu(spile_cpus, cpu)->context.busy) || cpu_online(cpu))
			return;
		usleep_range(100, 1000);
	}
}

void spile_context_wait(void)
{
	int cpu;

	/* Handlers run with preemption off, so each is an RCU read-side section. */
	synchronize_rcu();
	/*
	 * But RCU takes an idle CPU for one without readers. Nearly all of a handler has interrupts
	 * off; the rest is over by the time that this and what follows have taken.
	 */
	if (SPILE_IDLE_IS_PROBED)
		on_each_cpu(is_interrupted, NULL, 1);
	for_each_possible_cpu(cpu)
		wait_for_cpu_that_goes(cpu);
}

/*
 * Adds a part to a CPU's memory, of which *at bytes are used, and returns its offset. *at
 * becomes SIZE_MAX on overflow.
 */
static size_t take(size_t *at, size_t number, size_t bytes)
{
	size_t begin = *at;

	/* 5.10 has no size_mul(); array_size() saturates in the same way. */
	if (check_add_overflow(begin, array_size(number, bytes), at) || *at > SIZE_MAX - 63)
		*at = SIZE_MAX;
	else
		*at = ALIGN(*at, 64);
	return begin;
}

/* Size of one CPU's memory; sets its parts, which follow the struct, if `cpu` is given. */
static size_t layout(struct spile_cpu *cpu)
{
	size_t at = SPILE_COUNTS_AT;
	size_t counts = take(&at, spile_script.probe_count, sizeof(struct spile_counts));
	size_t counters = take(&at, spile_script.counter_count, sizeof(spile_long));
	size_t frame = take(&at, spile_script.frame_bytes, 1);
	size_t scratch = take(&at, spile_script.scratch_bytes, 1);
	size_t message = take(&at, spile_message_bytes(), 1);
	size_t tokens = take(&at, spile_script.string_bytes, 1);
	size_t registers = take(&at, spile_script.match_registers, sizeof(int));
	size_t ends = take(&at, spile_script.match_groups, 2 * sizeof(int));
	size_t matched = take(&at, spile_script.match_groups ? spile_script.string_bytes : 0, 1);
	size_t stack = take(&at, spile_script.stack_frames, sizeof(unsigned long));
	size_t user_stack = take(&at, spile_script.user_stacks ? spile_script.stack_frames : 0,
				 sizeof(struct spile_user_frame));
	size_t frame_texts = take(&at, spile_script.user_stacks ? SPILE_FRAME_TEXTS : 0,
				  sizeof(struct spile_frame_text));
	size_t user_known =
		take(&at, spile_script.user_stacks ? 1 : 0, spile_user_known_bytes());
	size_t symbol = take(&at, SPILE_SYMBOL_TEXT, 1);
	size_t stack_text = take(&at, SPILE_STACK_TEXT, 1);

	if (cpu) {
		char *memory = (char *)cpu;

		WARN_ON_ONCE(counters != spile_counters_at());

		cpu->counts = (struct spile_counts *)(memory + counts);
		cpu->context.counters = (spile_long *)(memory + counters);
		cpu->frame = memory + frame;
		cpu->context.frame = cpu->frame;
		cpu->context.frame_end = memory + frame + spile_script.frame_bytes;
		cpu->scratch = memory + scratch;
		cpu->message = memory + message;
		cpu->tokens = memory + tokens;
		cpu->match.registers = (int *)(memory + registers);
		cpu->match.ends = (int *)(memory + ends);
		cpu->match.text = memory + matched;
		cpu->stack = (unsigned long *)(memory + stack);
		cpu->user_stack = (struct spile_user_frame *)(memory + user_stack);
		cpu->frame_texts = (struct spile_frame_text *)(memory + frame_texts);
		cpu->user_known = (struct spile_user_known *)(memory + user_known);
		cpu->symbol = memory + symbol;
		cpu->stack_text = memory + stack_text;
	}
	return at;
}

int spile_context_init(void)
{
	size_t bytes = layout(NULL);
	int i;

	/* This includes 4 bytes for each element that foreach sorts. */
	if (!spile_session_affords("handlers", 0, bytes, num_possible_cpus()))
		return -ENOMEM;
	for_each_possible_cpu(i) {
		struct spile_cpu *cpu = vzalloc_node(bytes, cpu_to_node(i));

		if (!cpu) {
			spile_context_exit();
			return -ENOMEM;
		}
		layout(cpu);
		per_cpu(spile_cpus, i) = cpu;
		spile_session_charge(bytes);
	}
	return 0;
}

void spile_context_exit(void)
{
	int i;

	for_each_possible_cpu(i) {
		vfree(per_cpu(spile_cpus, i));
		per_cpu(spile_cpus, i) = NULL;
	}
}
