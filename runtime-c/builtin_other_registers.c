// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Builtins by which library scripts look at registers other than those of the hit: those of a
 * system call, whose function gets a struct pt_regs, and saved ones. The setting is valid until
 * the run ends.
 */
#include <linux/kernel.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <asm/syscall.h>

#include "script.h"
#include "builtins.h"
#include "context.h"
#include "guard.h"
#include "memory.h"

spile_long spile_fn___get_kregs(struct spile_context *c)
{
	struct pt_regs *regs = spile_registers(c);

	return regs && !user_mode(regs) ? (unsigned long)regs : 0;
}

spile_long spile_fn___get_uregs(struct spile_context *c)
{
	struct pt_regs *regs = spile_registers(c);

	if (regs && user_mode(regs))
		return (unsigned long)regs;
	return current->mm ? (unsigned long)task_pt_regs(current) : 0;
}

/* Copies the registers, because the memory that the script names may change or be freed. */
static void other_registers(struct spile_context *c, spile_long from, bool user)
{
	struct spile_cpu *cpu = spile_cpu_of(c);
	struct pt_regs regs;

	if (SPILE_REGS_ARE_WORDS(c->probe->kind)) {
		spile_fail_text(c, "this probe has no registers to replace");
		return;
	}
	if (spile_memory_read(&regs, from, sizeof(regs), false)) {
		spile_fail(c, SPILE_E_READ_FAULT, from);
		return;
	}
	if (user_mode(&regs) != user) {
		spile_fail_text(c, "the registers at 0x%llx are not of the %s", from,
				user ? "user" : "kernel");
		return;
	}
	/* A stack that this run has already walked belongs to the old registers. */
	c->stale |= SPILE_STALE_RUN;
	cpu->stack_kind = SPILE_STACK_NONE;
	cpu->other.regs = regs;
	c->regs = (unsigned long *)&cpu->other.regs;
}

void spile_fn___set_kregs(struct spile_context *c, spile_long regs)
{
	other_registers(c, regs, false);
}

void spile_fn___set_uregs(struct spile_context *c, spile_long regs)
{
	other_registers(c, regs, true);
}

void spile_fn___set_syscall_pt_regs(struct spile_context *c, spile_long from)
{
	struct spile_other_registers *other = &spile_cpu_of(c)->other;
	struct pt_regs regs;

	if (spile_memory_read(&regs, from, sizeof(regs), false)) {
		spile_fail(c, SPILE_E_READ_FAULT, from);
		return;
	}
	syscall_get_arguments(current, &regs, other->arguments);
	other->syscall_number = syscall_get_nr(current, &regs);
	other->have_arguments = true;
	c->stale |= SPILE_STALE_RUN;
}

spile_long spile_fn__stp_get_register_by_offset(struct spile_context *c, spile_long offset)
{
	struct pt_regs *regs = spile_registers(c);

	if (!regs)
		spile_fail_text(c, "no registers available here");
	else if (offset < 0 || offset >= sizeof(*regs) || offset % sizeof(long))
		spile_fail_text(c, "no register is at offset %lld", offset);
	else
		return *(long *)((char *)regs + offset);
	return 0;
}
