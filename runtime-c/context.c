// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Per-CPU contexts and what stands around every handler run.
 */
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/vmalloc.h>

#include "budget.h"
#include "context.h"
#include "run.h"
#include "session.h"
#include "stack.h"

DEFINE_PER_CPU(struct spile_cpu *, spile_cpus);

bool spile_context_run(struct spile_site *site, enum spile_state state, unsigned long *regs)
{
	if (unlikely(site->sampled) && spile_budget_turns_away(site))
		return false;
	return spile_run(site, state, false, regs, NULL);
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
	/* Others' counters are theirs alone to write: the base takes what they hold off. */
	*base = (spile_ulong)value - (spile_ulong)spile_counter(index, 0);
}

struct spile_cpu *spile_context_claim(void)
{
	struct spile_cpu *cpu;

	preempt_disable();
	/*
	 * A task that can be here is not inside a handler, and a handler in an
	 * interrupt ends before we go on: the context is free.
	 */
	cpu = spile_this_cpu();
	WRITE_ONCE(cpu->busy, 1);
	barrier();
	cpu->context.probe = NULL;
	cpu->context.error = SPILE_OK;
	return cpu;
}

void spile_context_release(struct spile_cpu *cpu)
{
	barrier();
	WRITE_ONCE(cpu->busy, 0);
	preempt_enable();
}

void spile_context_wait(void)
{
	/* Handlers run with preemption off, so each is an RCU read-side section. */
	synchronize_rcu();
}

/* Size of one CPU's memory, and where its parts are, if there is one: behind the struct. */
static size_t layout(struct spile_cpu *cpu)
{
	size_t at = ALIGN(sizeof(*cpu), 64);
	size_t counts = at;
	size_t counters, frame, scratch, message, tokens, registers, ends, matched, stack, symbol, stack_text;

	at += ALIGN(spile_script.probe_count * sizeof(struct spile_counts), 64);
	counters = at;
	at += ALIGN(spile_script.counter_count * sizeof(spile_long), 64);
	frame = at;
	at += ALIGN(spile_script.frame_bytes, 64);
	scratch = at;
	at += ALIGN(spile_script.scratch_bytes, 64);
	message = at;
	at += ALIGN(spile_message_bytes(), 64);
	tokens = at;
	at += ALIGN(spile_script.string_bytes, 64);
	registers = at;
	at += ALIGN(spile_script.match_registers * sizeof(int), 64);
	ends = at;
	at += ALIGN(2 * spile_script.match_groups * sizeof(int), 64);
	matched = at;
	if (spile_script.match_groups)
		at += ALIGN(spile_script.string_bytes, 64);
	stack = at;
	at += SPILE_STACK_FRAMES * sizeof(unsigned long);
	symbol = at;
	at += SPILE_SYMBOL_TEXT;
	stack_text = at;
	at += SPILE_STACK_TEXT;

	if (cpu) {
		char *memory = (char *)cpu;

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
		cpu->symbol = memory + symbol;
		cpu->stack_text = memory + stack_text;
	}
	return at;
}

int spile_context_init(void)
{
	size_t bytes = layout(NULL);
	int i;

	/* What foreach sorts has 4 bytes for each element of its array here. */
	if (!spile_session_affords("handlers", 0, bytes))
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
