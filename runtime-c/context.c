// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Per-CPU contexts and what stands around every handler run.
 */
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/timex.h>
#include <linux/vmalloc.h>

#include "context.h"
#include "guard.h"
#include "lock.h"
#include "ring.h"
#include "session.h"
#include "site.h"

DEFINE_PER_CPU(struct spile_cpu, spile_cpus);

/* Whether the task's stack has less than MINSTACKSPACE bytes left. Interrupt
 * and exception stacks are not looked at: they are near empty when entered. */
static __always_inline bool stack_is_low(void)
{
#ifdef CONFIG_X86
	unsigned long used_from = (unsigned long)__builtin_frame_address(0) -
				  (unsigned long)task_stack_page(current);

	return used_from < spile_script.least_stack;	/* below the page: wraps, not this stack */
#else
	return false;
#endif
}

bool spile_context_run(struct spile_site *site, enum spile_state state,
		       void (*handler)(struct spile_context *c),
		       unsigned long *regs, char *entry)
{
	struct spile_cpu *cpu = this_cpu_ptr(&spile_cpus);
	struct spile_counts *counts = &cpu->counts[site->index];
	const struct spile_probe *probe = site->probe;
	struct spile_context *c = &cpu->context;
	bool fine = true;
	u64 began = 0;

	if (unlikely(READ_ONCE(spile_session_state) != state)) {
		local_inc(&counts->stopped);
		return false;
	}
	/*
	 * Plain load and store: only this CPU touches busy, and whoever
	 * interrupts between the two puts it back before returning.
	 */
	if (unlikely(READ_ONCE(cpu->busy))) {
		local_inc(&counts->nested);
		return false;
	}
	WRITE_ONCE(cpu->busy, 1);
	barrier();	/* what follows belongs to the owner */

	if (unlikely(stack_is_low())) {
		local_inc(&counts->low_stack);
		spile_guard_skipped(cpu);
		fine = false;
		goto release;
	}

	if (unlikely(++cpu->runs % SPILE_OVERLOAD_SAMPLE == 0))
		began = get_cycles();

	c->regs = regs;
	c->entry = entry;
	c->probe = probe;
	c->error = SPILE_OK;
	c->actions = spile_script.max_actions;
	c->location = SPILE_NO_LOCATION;
	c->depth = 0;
	c->next = 0;
	c->frame = cpu->frame;
	cpu->match.groups = 0;
	cpu->token_end = 0;

	if (probe->lock_count && unlikely(!spile_lock_all(probe->locks, probe->lock_count))) {
		local_inc(&counts->lock_skipped);
		spile_guard_skipped(cpu);
		fine = false;
		goto release;
	}
	handler(c);
	if (probe->lock_count)
		spile_unlock_all(probe->locks, probe->lock_count);

	/* The entry handler of a .return: its hit is counted when it returns. */
	if (handler == probe->handler)
		local_inc(&counts->handled);
	if (unlikely(c->error)) {
		fine = false;
		if (handler != probe->handler)
			local_inc(&counts->handled);
		if (spile_guard_report(cpu))
			local_inc(&counts->errors);
	}
	if (unlikely(began))
		spile_guard_overload(cpu, began);
release:
	barrier();
	WRITE_ONCE(cpu->busy, 0);
	return fine;
}

struct spile_cpu *spile_context_claim(void)
{
	struct spile_cpu *cpu;

	preempt_disable();
	/*
	 * A task that can be here is not inside a handler, and a handler in an
	 * interrupt ends before we go on: the context is free.
	 */
	cpu = this_cpu_ptr(&spile_cpus);
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

/* Size of one CPU's memory, and where its parts are. */
static size_t layout(struct spile_cpu *cpu, char *memory)
{
	size_t at = 0;
	size_t counts = at;
	size_t frame, scratch, message, tokens, registers, ends, matched;

	at += ALIGN(spile_script.probe_count * sizeof(struct spile_counts), 64);
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

	if (cpu) {
		cpu->counts = (struct spile_counts *)(memory + counts);
		cpu->frame = memory + frame;
		cpu->context.frame_end = memory + frame + spile_script.frame_bytes;
		cpu->scratch = memory + scratch;
		cpu->message = memory + message;
		cpu->tokens = memory + tokens;
		cpu->match.registers = (int *)(memory + registers);
		cpu->match.ends = (int *)(memory + ends);
		cpu->match.text = memory + matched;
	}
	return at;
}

int spile_context_init(void)
{
	size_t bytes = layout(NULL, NULL);
	int i;

	for_each_possible_cpu(i) {
		struct spile_cpu *cpu = per_cpu_ptr(&spile_cpus, i);
		char *memory = vzalloc_node(bytes, cpu_to_node(i));

		if (!memory) {
			spile_context_exit();
			return -ENOMEM;
		}
		layout(cpu, memory);
		spile_session_charge(bytes);
	}
	return 0;
}

void spile_context_exit(void)
{
	int i;

	for_each_possible_cpu(i) {
		struct spile_cpu *cpu = per_cpu_ptr(&spile_cpus, i);

		vfree(cpu->counts);	/* first in the CPU's memory */
		cpu->counts = NULL;
	}
}
