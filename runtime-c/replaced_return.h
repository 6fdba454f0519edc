/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The return address of a function of the kernel that has several kretprobes.
 *
 * Kernels without rethook (before 5.18) replace it at each of them: the entry handlers of all
 * but the first find the trampoline, and not who has called the function. The handlers of one
 * call run one after the other on a CPU, so the one before has seen it. Where an interrupt comes
 * in between, whose functions are probed too, or where another session's was first, the
 * trampoline stays.
 */
#ifndef SPILE_REPLACED_RETURN_H
#define SPILE_REPLACED_RETURN_H

#include <linux/kallsyms.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/percpu.h>
#include <linux/ptrace.h>
#include <linux/string.h>

#ifdef CONFIG_KRETPROBE_ON_RETHOOK
static __always_inline unsigned long spile_return_restore(struct pt_regs *regs)
{
	return 0;
}

static __always_inline void spile_return_replace(struct pt_regs *regs, unsigned long replaced)
{
}

static __always_inline void spile_return_handled(void)
{
}
#else
struct spile_last_entry {
	unsigned long events;	/* entries and returns on this CPU, with this one */
	unsigned long event;	/* the one that saw what follows */
	unsigned long at;
	unsigned long address;
};

static DEFINE_PER_CPU(struct spile_last_entry, spile_last_entry);
static unsigned long spile_trampoline;	/* 0: not known yet */

static noinline bool spile_is_trampoline(unsigned long address)
{
	unsigned long known = READ_ONCE(spile_trampoline);
	char name[KSYM_SYMBOL_LEN];

	if (known)
		return address == known;
	snprintf(name, sizeof(name), "%ps", (void *)address);
	if (!strstr(name, "kretprobe_trampoline"))
		return false;
	WRITE_ONCE(spile_trampoline, address);
	return true;
}
NOKPROBE_SYMBOL(spile_is_trampoline);

/*
 * At each entry, with its registers: puts the return address back if it is replaced and known,
 * and returns what was there for spile_return_replace(), which follows. Else 0. Preemption off.
 */
static noinline unsigned long spile_return_restore(struct pt_regs *regs)
{
	struct spile_last_entry *last = this_cpu_ptr(&spile_last_entry);
	unsigned long *at = (unsigned long *)regs->sp, found = *at;
	bool is_replaced;

	is_replaced = last->event == last->events && last->at == (unsigned long)at &&
		      found != last->address && spile_is_trampoline(found);
	last->event = ++last->events;
	if (is_replaced) {
		WRITE_ONCE(*at, last->address);
		return found;
	}
	last->at = (unsigned long)at;
	last->address = found;
	return 0;
}
NOKPROBE_SYMBOL(spile_return_restore);

static __always_inline void spile_return_replace(struct pt_regs *regs, unsigned long replaced)
{
	if (replaced)
		WRITE_ONCE(*(unsigned long *)regs->sp, replaced);
}

/* At each return: what follows is another call. Preemption off. */
static __always_inline void spile_return_handled(void)
{
	this_cpu_inc(spile_last_entry.events);
}
#endif

#endif
