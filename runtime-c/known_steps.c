// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Steps between frames that the unwinder has shown before.
 *
 * The table is a cache. Each entry is one word, which is read and written at once and includes
 * the address to which it belongs. The entry of an address never changes its value; it is only
 * replaced by that of another address.
 */
#include <linux/kernel.h>
#include <linux/pgtable.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/string.h>

#include "known_steps.h"

#if defined(SPILE_HAVE_UNWIND_START) && defined(CONFIG_UNWINDER_ORC) && defined(CONFIG_X86_64)
/*
 * An entry: the address's lower half, which no two addresses of the kernel's code share;
 * where the caller's frame pointer is, in words below its frame; words that the caller's
 * frame is above the stack pointer, or STEP_BY_POINTER above the frame pointer, or
 * STEP_LAST: of the registers saved at the kernel's entry; its meaning.
 */
enum {
	STEP_KNOWN = 1,
	STEP_LAST = 2,			/* the frame is the outermost one */
	STEP_UNSURE = 4,		/* ask the unwinder */
	STEP_INTERRUPTED = 8,		/* the address is an instruction's, not a return address */
	STEP_KIND = STEP_INTERRUPTED,
	STEP_BY_POINTER = 16,
	WORDS_SHIFT = 8,
	MOST_WORDS = 0xffff,
	POINTER_SHIFT = 24,
	POINTER_STAYS = 0,		/* in its register */
	POINTER_LOST = 0xff,		/* not known where */
	ADDRESS_SHIFT = 32,
	STEP_BITS = 11,
};

static u64 steps[1 << STEP_BITS];

/* Is in no frame pointer. */
static const unsigned long other_pointer = 0x5aa55aa55aa55aa5ul;

static inline u64 *place_of(unsigned long address)
{
	return &steps[(u32)address * 0x9e3779b1u >> (32 - STEP_BITS)];
}

static inline u64 tag_of(unsigned long address, unsigned int kind)
{
	return (u64)address << ADDRESS_SHIFT | STEP_KNOWN | kind;
}

static inline bool has_tag(u64 step, u64 tag)
{
	return !((step ^ tag) & (~0ull << ADDRESS_SHIFT | STEP_KNOWN | STEP_KIND));
}

/* The entry of an address, in one of two places; 0: there is none. */
static inline u64 find_step(unsigned long address, unsigned int kind)
{
	u64 *place = place_of(address);
	u64 tag = tag_of(address, kind);
	u64 step = READ_ONCE(*place);

	if (likely(has_tag(step, tag)))
		return step;
	step = READ_ONCE(steps[(place - steps) ^ 1]);
	return has_tag(step, tag) ? step : 0;
}

static void put_step(unsigned long address, unsigned int kind, unsigned int meaning, u64 words,
		     u64 pointer)
{
	u64 *place = place_of(address);

	if (READ_ONCE(*place))
		place = &steps[(place - steps) ^ 1];
	WRITE_ONCE(*place, tag_of(address, kind) | meaning | words << WORDS_SHIFT |
			   pointer << POINTER_SHIFT);
}

static inline u64 words_of(u64 step)
{
	return step >> WORDS_SHIFT & MOST_WORDS;
}

/* Code that stays as it is while the kernel runs. */
static inline bool is_kernel_code(unsigned long address)
{
	return address >= __START_KERNEL_map && address < MODULES_VADDR;
}

static inline unsigned long entry_registers(void)
{
	return (unsigned long)task_pt_regs(current);
}

/* Whether the stack pointer may be one of the current task's own stack. */
static inline bool is_on_stack(unsigned long sp)
{
	unsigned long begin = (unsigned long)task_stack_page(current);

	return sp - begin <= entry_registers() - begin && !(sp & 7);
}

static inline unsigned long stack_word(unsigned long address)
{
	return READ_ONCE_NOCHECK(*(unsigned long *)address);
}

unsigned int spile_steps_walk(const struct pt_regs *regs, unsigned long *frames, unsigned int most)
{
	unsigned long pc = regs->ip, sp = regs->sp, bp = regs->bp, entry = entry_registers();
	unsigned int kind = STEP_INTERRUPTED, count = 0;

	if (!is_on_stack(sp))
		return 0;
	for (;;) {
		u64 step = find_step(pc, kind), pointer = step >> POINTER_SHIFT & 0xff;
		unsigned long next = sp;

		if (unlikely(!step || step & STEP_UNSURE || !is_kernel_code(pc)))
			return 0;
		if (step & STEP_LAST)
			return sp + words_of(step) * 8 == entry ? count : 0;
		if (step & STEP_BY_POINTER)
			next = bp;
		next += words_of(step) * 8;
		/* Both must point further up the stack; a frame pointer that is lost is 0. */
		if (unlikely(next <= sp || !is_on_stack(next) || count == most))
			return 0;
		if (pointer == POINTER_LOST)
			bp = 0;
		else if (pointer != POINTER_STAYS)
			bp = stack_word(next - pointer * 8);
		sp = next;
		pc = stack_word(sp - 8);
		frames[count++] = pc;
		kind = 0;
	}
}

/*
 * Whether the step has led up the current task's stack, to a caller whose address is where it
 * is in every frame.
 */
static bool is_plain_step(unsigned long sp, struct unwind_state *after)
{
	return !unwind_done(after) && !unwind_error(after) && !after->regs &&
	       is_on_stack(after->sp) && after->sp > sp && after->sp - sp <= MOST_WORDS * 8 &&
	       stack_word(after->sp - 8) == after->ip;
}

/*
 * The only word between the stack pointers that can be the frame pointer's: words below the
 * second one.
 */
static u64 find_pointer(unsigned long sp, unsigned long after, unsigned long bp)
{
	u64 found = POINTER_LOST;
	unsigned int words;

	for (words = 2; words < POINTER_LOST && after - words * 8 >= sp; words++) {
		if (stack_word(after - words * 8) != bp)
			continue;
		if (found != POINTER_LOST)
			return POINTER_LOST;
		found = words;
	}
	return found;
}

/*
 * Learns steps that do not depend on the frame pointer. again: the same step with another frame
 * pointer, and with other registers cleared.
 */
static void learn_by_stack(unsigned long pc, unsigned int kind, unsigned long sp,
			   struct unwind_state *after, struct unwind_state *again)
{
	u64 pointer = POINTER_LOST;

	if (again->bp == other_pointer)
		pointer = POINTER_STAYS;
	else if (again->bp == after->bp)
		pointer = find_pointer(sp, after->sp, after->bp);
	put_step(pc, kind, 0, (after->sp - sp) / 8, pointer);
}

noinline void spile_steps_learn_first(const struct pt_regs *regs, struct unwind_state *after)
{
	struct unwind_state again;
	struct pt_regs other;

	if (!is_kernel_code(regs->ip) || !is_on_stack(regs->sp) ||
	    find_step(regs->ip, STEP_INTERRUPTED))
		return;
	/* Only the stack pointer may decide. */
	memset(&other, 0, sizeof(other));
	other.ip = regs->ip;
	other.sp = regs->sp;
	other.bp = other_pointer;
	other.cs = regs->cs;
	other.ss = regs->ss;
	other.flags = regs->flags;
	unwind_start(&again, current, &other, NULL);
	if (is_plain_step(regs->sp, after) && !unwind_done(&again) && again.sp == after->sp &&
	    again.ip == after->ip)
		learn_by_stack(regs->ip, STEP_INTERRUPTED, regs->sp, after, &again);
	else
		put_step(regs->ip, STEP_INTERRUPTED, STEP_UNSURE, 0, 0);
}

bool spile_steps_unknown(const struct unwind_state *before)
{
	return !before->regs && is_kernel_code(before->ip) && is_on_stack(before->sp) &&
	       !find_step(before->ip, 0);
}

/* Whether the caller's frame is as far above the frame pointer, whatever the stack pointer is. */
static bool is_by_pointer(const struct unwind_state *before, const struct unwind_state *after)
{
	struct unwind_state again = *before;

	if (!is_on_stack(before->bp) || before->bp < before->sp || after->sp <= before->bp ||
	    after->sp - before->bp > MOST_WORDS * 8)
		return false;
	again.sp += 8;
	unwind_next_frame(&again);
	if (again.sp != after->sp || again.ip != after->ip)
		return false;
	again = *before;
	again.bp -= 8;
	unwind_next_frame(&again);
	return again.sp == after->sp - 8;
}

noinline void spile_steps_learn(const struct unwind_state *before, struct unwind_state *after)
{
	struct unwind_state again;

	if (unwind_error(after))
		return;
	if (unwind_done(after) || (after->regs && user_mode(after->regs))) {
		put_step(before->ip, 0, STEP_LAST, (entry_registers() - before->sp) / 8, 0);
		return;
	}
	/* This time the kernel was interrupted here. */
	if (after->regs)
		return;
	again = *before;
	again.bp = other_pointer;
	unwind_next_frame(&again);
	if (!is_plain_step(before->sp, after))
		put_step(before->ip, 0, STEP_UNSURE, 0, 0);
	else if (!unwind_done(&again) && again.sp == after->sp && again.ip == after->ip)
		learn_by_stack(before->ip, 0, before->sp, after, &again);
	else if (is_by_pointer(before, after))
		put_step(before->ip, 0, STEP_BY_POINTER, (after->sp - before->bp) / 8, POINTER_LOST);
	else
		put_step(before->ip, 0, STEP_UNSURE, 0, 0);
}
#endif
