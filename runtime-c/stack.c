// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Stacks of the code that a handler interrupts, and of other tasks.
 */
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/ptrace.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/stacktrace.h>

#include "script.h"
#include "context.h"
#include "features.h"
#include "hit_address.h"
#include "known_steps.h"
#include "memory.h"
#include "rcu_here.h"
#include "stack.h"

/* Frames of the handler itself: the runtime is part of the module. */
static bool is_own(unsigned long address)
{
	return within_module(address, THIS_MODULE);
}

#ifdef SPILE_HAVE_UNWIND_START
/* Records the number of frames after which the walk ended. */
static void note_depth(struct spile_context *c, struct unwind_state *state, unsigned int count)
{
	if (unlikely(count == spile_script.stack_frames) && !unwind_done(state) &&
	    unwind_get_return_address(state))
		spile_cpu_of(c)->stacks_deep++;
}

static unsigned int unwind(struct spile_context *c, struct pt_regs *regs, unsigned long *frames)
{
	struct unwind_state state, before;
	unsigned int count = 0, known;
	unsigned long address;

	/* The unwinder starts with the caller. */
	if (regs) {
		frames[count++] = spile_hit_address(c, regs);
		known = spile_steps_walk(regs, frames + count, spile_script.stack_frames - count);
		if (likely(known))
			return count + known;
	}
	unwind_start(&state, current, regs, NULL);
	if (regs)
		spile_steps_learn_first(regs, &state);
	while (count < spile_script.stack_frames && !unwind_done(&state)) {
		bool learns = regs && spile_steps_unknown(&state);

		address = unwind_get_return_address(&state);
		if (!address)
			break;
		if (count || regs || !is_own(address))
			frames[count++] = address;
		if (unlikely(learns))
			before = state;
		unwind_next_frame(&state);
		if (unlikely(learns))
			spile_steps_learn(&before, &state);
	}
	note_depth(c, &state, count);
	return count;
}

/*
 * Whether the unwinder would warn (rethook_find_ret_addr()): of a task that is runnable, in a
 * function whose return is probed. Nobody wakes a blocked one while its lock is held.
 */
static bool may_warn(const struct task_struct *task, bool locked)
{
#ifdef CONFIG_RETHOOK
	return READ_ONCE(task->rethooks.first) &&
	       (!locked || READ_ONCE(task->on_rq) || !READ_ONCE(task->__state));
#else
	return false;
#endif
}

static unsigned int unwind_blocked(struct spile_context *c, struct task_struct *task, bool locked,
				   unsigned long *frames)
{
	struct unwind_state state;
	unsigned long address;
	unsigned int count = 0;

	if (may_warn(task, locked))
		return 0;
	for (unwind_start(&state, task, NULL, NULL);
	     count < spile_script.stack_frames && !unwind_done(&state);
	     unwind_next_frame(&state)) {
		address = unwind_get_return_address(&state);
		if (!address)
			break;
		frames[count++] = address;
		/* A runnable one may have begun to run. */
		if (may_warn(task, locked))
			break;
	}
	note_depth(c, &state, count);
	return count;
}

/* For a task that does not run; the unwinder returns no frames for one that runs on another CPU. */
static unsigned int unwind_task(struct spile_context *c, struct task_struct *task,
				unsigned long *frames)
{
	unsigned long flags;
	unsigned int count;

	local_irq_save(flags);
	/* Not locked where it is already, by what is probed or by a CPU that wakes the task. */
	if (raw_spin_trylock(&task->pi_lock)) {
		count = unwind_blocked(c, task, true, frames);
		raw_spin_unlock(&task->pi_lock);
	} else {
		count = unwind_blocked(c, task, false, frames);
	}
	local_irq_restore(flags);
	return count;
}
#else
/* Without the unwinder's functions a module cannot read another task's stack. */
static unsigned int unwind_task(struct spile_context *c, struct task_struct *task,
				unsigned long *frames)
{
	return 0;
}

/* The stack starts here: before the probed place there are frames of the kernel's probes too. */
static unsigned int unwind(struct spile_context *c, struct pt_regs *regs, unsigned long *frames)
{
	unsigned int count = stack_trace_save(frames, spile_script.stack_frames, 0);
	unsigned int first = 0;

	if (count == spile_script.stack_frames)
		spile_cpu_of(c)->stacks_deep++;
	while (first < count && is_own(frames[first]))
		first++;
	memmove(frames, frames + first, (count - first) * sizeof(*frames));
	return count - first;
}
#endif

unsigned int spile_stack_kernel(struct spile_context *c, const unsigned long **frames)
{
	struct spile_cpu *cpu = spile_cpu_of(c);
	struct pt_regs *regs = spile_registers(c);

	*frames = cpu->stack;
	if (cpu->stack_kind == SPILE_STACK_KERNEL)
		return cpu->stack_count;
	cpu->stack_count = regs && user_mode(regs) ? 0 : unwind(c, regs, cpu->stack);
	cpu->stack_kind = SPILE_STACK_KERNEL;
	c->stale |= SPILE_STALE_RUN;
	return cpu->stack_count;
}

/*
 * The task at an address; NULL if there is none, or it is exiting. The address comes
 * from the script, so it is compared with the task that the kernel has under that pid.
 */
static struct task_struct *living_task(unsigned long address)
{
	struct task_struct *task;
	pid_t pid;

	if (spile_memory_read(&pid, address + offsetof(struct task_struct, pid), sizeof(pid),
			      false) ||
	    pid <= 0)
		return NULL;
	task = pid_task(find_pid_ns(pid, &init_pid_ns), PIDTYPE_PID);
	return (unsigned long)task == address && !(READ_ONCE(task->flags) & PF_EXITING) ? task :
											  NULL;
}

unsigned int spile_stack_task(struct spile_context *c, unsigned long address,
			      const unsigned long **frames)
{
	struct spile_cpu *cpu = spile_cpu_of(c);
	struct task_struct *task;

	if (address == (unsigned long)current)
		return spile_stack_kernel(c, frames);
	*frames = cpu->stack;
	cpu->stack_kind = SPILE_STACK_NONE;
	cpu->stack_count = 0;
	c->stale |= SPILE_STALE_RUN;
	/*
	 * The task's stack cannot be pinned by a module. One that has not begun
	 * to exit keeps it longer than the few steps here take, and since 5.18
	 * ("fork: Only cache the VMAP stack in finish_task_switch()") its
	 * memory also outlives this section.
	 */
	if (!spile_rcu_waits_for_us())
		return 0;
	rcu_read_lock();
	task = living_task(address);
	if (task)
		cpu->stack_count = unwind_task(c, task, cpu->stack);
	rcu_read_unlock();
	return cpu->stack_count;
}
