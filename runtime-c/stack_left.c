// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Space left of a stack other than the task's.
 *
 * Exception stacks are in the CPU entry areas, whose virtual addresses differ by multiples of
 * the size of an entry area (randomized since "x86/mm: Randomize per-cpu entry area"). A CPU's
 * interrupt stack is anywhere; the variable that points to it (hardirq_stack_ptr) is not
 * exported. Its top is found in an interrupt of a task: the entry code has stored the task's
 * stack pointer in the topmost word, which is less than a page above the current one.
 *
 * An interrupt of a softirq finds nothing. If a hit in that interrupt requested the next one at
 * once, the CPU would never leave them, so requests have a distance.
 */
#include <linux/hardirq.h>
#include <linux/mm.h>
#include <linux/preempt.h>
#include <linux/smp.h>
#include <linux/timekeeping.h>

#include "features.h"
#include "irq_work.h"
#include "stack_left.h"

#ifdef CONFIG_X86_64
#include <asm/cpu_entry_area.h>
#include <asm/irq.h>
#include <asm/page.h>
#include <asm/pgtable.h>

#define LEARNING_DISTANCE_NS	(10 * NSEC_PER_MSEC)

/* In the interrupt of the CPU's own irq_work. */
static void learn(struct irq_work *work)
{
	struct spile_cpu *cpu = container_of(work, struct spile_cpu, stack_learner);
	unsigned long top = PAGE_ALIGN(current_stack_pointer);
	unsigned long task = (unsigned long)task_stack_page(current);

	/*
	 * An interrupt of user space runs on the task's own stack; one of a softirq is not at
	 * the top.
	 */
	if (current_stack_pointer - task < THREAD_SIZE || in_nmi() || softirq_count() ||
	    hardirq_count() != HARDIRQ_OFFSET)
		return;
	if (*(unsigned long *)(top - sizeof(long)) - task < THREAD_SIZE)
		WRITE_ONCE(cpu->irq_stack, top - IRQ_STACK_SIZE);
}

#ifdef SPILE_HAVE_EXCEPTION_STACKS
/* Bytes left of the exception stack at this offset in a CPU's entry area; 0 if there is none. */
static unsigned long left_in_entry_area(unsigned long place)
{
#define STACK(name) { \
		offsetof(struct cpu_entry_area, estacks) + \
			offsetof(struct cea_exception_stacks, name##_stack), \
		sizeof(((struct cea_exception_stacks *)0)->name##_stack) \
	}
	static const struct { unsigned long bottom, bytes; } stacks[] = {
		STACK(DF), STACK(NMI), STACK(DB), STACK(MCE), STACK(VC), STACK(VC2),
	};
#undef STACK
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(stacks); i++)
		if (place - stacks[i].bottom < stacks[i].bytes)
			return place - stacks[i].bottom;
	return 0;
}

static bool is_in_entry_area(unsigned long address, unsigned long *place)
{
	unsigned long at = address - CPU_ENTRY_AREA_PER_CPU;

	/*
	 * The entry areas have an entry of the top-level page table (of four levels) of their
	 * own.
	 */
	if (at >= 1ul << P4D_SHIFT)
		return false;
	*place = at % CPU_ENTRY_AREA_SIZE;
	return true;
}
#else
static unsigned long left_in_entry_area(unsigned long place)
{
	return 0;
}

static bool is_in_entry_area(unsigned long address, unsigned long *place)
{
	return false;
}
#endif

static noinline void request_learning(struct spile_cpu *cpu)
{
	u64 now = ktime_get_mono_fast_ns();

	if (now - cpu->learning_requested < LEARNING_DISTANCE_NS)
		return;
	cpu->learning_requested = now;
	spile_irq_work_queue(&cpu->stack_learner);
}

bool spile_stack_elsewhere_suffices(struct spile_cpu *cpu, const struct spile_site *site)
{
	unsigned long at = current_stack_pointer, place;
	unsigned long irq_stack = READ_ONCE(cpu->irq_stack);

	if (at - (unsigned long)task_stack_page(current) < THREAD_SIZE)
		return false;
	if (is_in_entry_area(at, &place))
		return left_in_entry_area(place) >= site->stack_needed;
	if (irq_stack && at - irq_stack < IRQ_STACK_SIZE)
		return at - irq_stack >= site->stack_needed;
	if (!irq_stack)
		request_learning(cpu);
	/* Only the current page is known to be part of the stack. */
	return (at & ~PAGE_MASK) >= site->stack_needed;
}

/* Runs in an interrupt, except on the calling CPU. */
static void begin_learning(void *unused)
{
	irq_work_queue(&spile_this_cpu()->stack_learner);
}

void spile_stack_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct irq_work *learner = &per_cpu(spile_cpus, cpu)->stack_learner;

		/* With PREEMPT_RT all others run in a thread. */
#ifdef IRQ_WORK_INIT_HARD
		*learner = IRQ_WORK_INIT_HARD(learn);
#else
		init_irq_work(learner, learn);
#endif
	}
	/*
	 * A CPU in user space learns it at its first hit on that stack; a work item would wait
	 * for tasks there that never sleep.
	 */
	on_each_cpu(begin_learning, NULL, 1);
}

void spile_stack_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		irq_work_sync(&per_cpu(spile_cpus, cpu)->stack_learner);
}
#else
void spile_stack_init(void)
{
}

void spile_stack_exit(void)
{
}
#endif

void spile_stack_need(struct spile_site *site)
{
	/* More than THREAD_SIZE means that no task's stack has enough. */
	site->stack_needed = min_t(unsigned long, max(spile_script.stacks[site->probe->index],
						       spile_script.least_stack),
				   THREAD_SIZE);
	site->stack_spare = THREAD_SIZE - site->stack_needed;
}
