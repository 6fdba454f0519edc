// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The kernel does not optimise a place where one of the kprobes has a handler after the
 * instruction, and looks again when the last of those is unregistered (optimize_kprobe(),
 * __unregister_kprobe_top()). So a second kprobe with such a handler is registered beside each
 * that is to be enabled. It stays disabled. Those of a batch are unregistered together, under one
 * hold of the lock: then the optimizer finds the whole batch.
 */
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "optimizer.h"

enum {
	/* fewer are enabled before the optimizer starts, or soon after */
	MANY_ENABLED = 32,
	/* as many as the optimizer takes at once (arch/x86/kernel/kprobes/opt.c) */
	BATCH = 256,
};

static struct kprobe *besides;		/* BATCH of them, or NULL: nothing is postponed */
static struct kprobe **registered;	/* the same, for unregister_kprobes() */
static unsigned int registered_count;

static void after_instruction(struct kprobe *kprobe, struct pt_regs *regs, unsigned long flags)
{
}
NOKPROBE_SYMBOL(after_instruction);

void spile_optimizer_postpone(unsigned int count)
{
	if (count < MANY_ENABLED)
		return;
	besides = kvmalloc_array(BATCH, sizeof(*besides), GFP_KERNEL);
	registered = kvmalloc_array(BATCH, sizeof(*registered), GFP_KERNEL);
	if (!besides || !registered)
		spile_optimizer_resume();
}

static void leave_batch(void)
{
	if (registered_count)
		unregister_kprobes(registered, registered_count);
	registered_count = 0;
}

/*
 * One that can be optimised is in the list of its place (try_to_optimize_kprobe()). Others may be
 * in one too, with somebody else's.
 */
static bool may_be_optimised(const struct kprobe *kprobe)
{
	return !list_empty(&kprobe->list) && !kprobe->post_handler;
}

void spile_optimizer_leave(struct kprobe *kprobe)
{
	struct kprobe *beside;

	if (!besides || !may_be_optimised(kprobe))
		return;
	if (registered_count == BATCH)
		leave_batch();
	beside = &besides[registered_count];
	memset(beside, 0, sizeof(*beside));
	beside->addr = kprobe->addr;
	beside->post_handler = after_instruction;
	beside->flags = KPROBE_FLAG_DISABLED;
	/* Without it, this one is optimised at once. */
	if (!register_kprobe(beside))
		registered[registered_count++] = beside;
}

void spile_optimizer_resume(void)
{
	leave_batch();
	kvfree(registered);
	registered = NULL;
	kvfree(besides);
	besides = NULL;
}
