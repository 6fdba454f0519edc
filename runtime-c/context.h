/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Per-CPU contexts. To run a handler one must own this CPU's context; the owner may use
 * everything in it (ring, frame, scratch, counters) without further protection, even in NMI: a
 * handler that interrupts the owner on its CPU finds the context taken, is counted as nested and
 * does not run.
 *
 * There is one for every possible CPU, so a CPU that comes up later has one.
 */
#ifndef SPILE_CONTEXT_H
#define SPILE_CONTEXT_H

#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/overflow.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <asm/local.h>

#include "raise.h"
#include "regex.h"
#include "script.h"
#include "user_stack.h"
#include "abi/abi.h"

enum {
	SPILE_OVERLOAD_SAMPLE = 16,	/* one in this many runs is timed; a power of two */
	SPILE_MESSAGE_MAX = 256,	/* bytes of an error message at least, NUL included */
	SPILE_CALLS_REPORTED = 32,	/* maximum calls listed with an error, innermost first */
};

/*
 * One probe site's account on one CPU. local_t: a nested hit counts itself
 * while the owner of the context may be counting.
 */
struct spile_counts {
	local_t handled;
	local_t nested;
	local_t lock_skipped;
	local_t low_stack;
	local_t stopped;
	local_t errors;
	local_t filtered;
	local_t lost;			/* records */
	local_t sampled;		/* turned away by sampling */
	u32 left;			/* hits to be turned away by sampling before the next run */
	/* Totals of the timed runs, written by the owner of the context. */
	u64 timed;
	u64 cycles;
	u64 least_cycles;
	u64 most_cycles;
};

/* Registers that the script has set to replace those of the hit until the run ends. */
struct spile_other_registers {
	struct pt_regs regs;		/* __set_kregs(), __set_uregs() */
	unsigned long arguments[6];	/* of a system call: __set_syscall_pt_regs() */
	long syscall_number;		/* of that call */
	bool have_arguments;
};

/* How long the run has waited for others: lock.c, spile_making_begin(). */
struct spile_waited {
	u64 time;			/* ns */
	u64 cycles;
	u32 polls;
};

/* At the head of each CPU's own memory (context.c). */
struct spile_cpu {
	struct spile_context context;	/* handlers get this one; spile_cpu_of() leads back */

	/* Set before the first handler runs, then constant. */
	struct spile_counts *counts;	/* by probe index */
	char *frame;
	char *scratch;			/* spile_script.scratch_bytes */
	char *message;			/* spile_message_bytes() */
	/* spile_script.string_bytes; the text that tokenize() splits */
	char *tokens;
	unsigned long *stack;		/* spile_script.stack_frames of them */
	struct spile_user_frame *user_stack;	/* as many; none if the script takes none */
	struct spile_frame_text *frame_texts;	/* SPILE_FRAME_TEXTS of them, by address */
	struct spile_user_known *user_known;	/* user_known.h */
	char *symbol;			/* SPILE_SYMBOL_TEXT bytes */
	char *stack_text;		/* SPILE_STACK_TEXT bytes */
	char *values;			/* of aggregates (map_init.c) */
	u32 *held;	/* ring.c: chunks that the ring holds, by place; as the header's places */
	/* shared with the loader, which may write anything into it; 0 before SPILE_SETUP */
	struct spile_ring_header *ring;

	/* Used by the owner of the context. */
	spile_ulong detail;		/* of context.error */
	/* calls that the error has left; -1: none, and the next one is the place of the error */
	int calls;
	u32 called_from[SPILE_CALLS_REPORTED];	/* locations of these calls */
	struct spile_match match;
	/* builtin_other_registers.c */
	struct spile_other_registers other;
	unsigned int token_at;		/* in tokens */
	unsigned int token_end;
	/* what stack, or user_stack, holds in this run */
	enum { SPILE_STACK_NONE, SPILE_STACK_KERNEL, SPILE_STACK_USER } stack_kind;
	unsigned int stack_count;
	u64 stacks_deep;		/* had more than spile_script.stack_frames */
	u64 stacks_cut;			/* as text longer than string_bytes */
	/* procfs.c: the file for which a handler runs, else NULL */
	struct spile_procfs *procfs;
	/* run-time minus link-time addresses of the program that the probe is in */
	unsigned long program_slide;
	/* the last address of the process that could not be read; 0: none (fault_in.c) */
	unsigned long user_fault;
	unsigned long user_fault_bytes;
	u64 random_state;		/* randint(); 0: not seeded */
	u64 files_requested;		/* user_files.c: when those of a whole process were, in ns */
	const void *files_requested_by;	/* its memory; never read */
	u64 moment;			/* map.h: of the last element created in a striped array */
	/* actions.c: state of a run that has used up its initial statements. */
	int asked;			/* it has */
	unsigned int actions_left;	/* beyond context.actions */
	u64 run_cycles;			/* it has taken, from the first time on that it asked */
	u64 looked_at;			/* in cycles */
	struct spile_waited waited;	/* 0 between runs */
	u64 lock_skips_since;		/* guard.c: begin of a second, ns, in which so many */
	u32 lock_skips;			/* hits were skipped for locks */
	u64 overload_since;		/* guard.c: begin of the interval, in cycles */
	u64 overload_cycles;		/* in handlers since then, as far as sampled */
	/* ring.c: records before it are complete; the header's head is a copy for the loader */
	u64 head;
	u64 tail;			/* the last tail seen in the header, checked */
	u64 first_held;			/* begin of the ring's first chunk */
	u64 chunk_end;			/* end of its last one */
	u64 lost_records;
	u64 lost_bytes;
	spile_long task;		/* of the last SPILE_RECORD_TASK, and its name */
	char task_name[TASK_COMM_LEN];
	u64 gate_counts[SPILE_GATE_COUNTS];	/* gate.c */

	/* Waking the reader (ring.c); read and written in interrupts and by poll() too. */
	struct irq_work wake;
	struct hrtimer wake_timer;
	/* 0: a wake-up is under way; the reader may sleep until it comes */
	int ready;
	int urgent;			/* that wake-up must not be delayed */
	u64 woken;			/* when the reader was, last */

	struct spile_raised raised;	/* raise.c */

	/* stack_left.c */
	struct irq_work stack_learner;
	u64 learning_requested;		/* when, last; in ns of the monotonic clock */
	/* lowest address of this CPU's interrupt stack; 0: not known yet */
	unsigned long irq_stack;

	struct spile_restarting *restarting;	/* the run that may; NULL: none */
};

/* A run that may end with SPILE_E_RESTART (fault_in.c). */
struct spile_restarting {
	const unsigned long *regs;
	unsigned long missing;		/* what it could not read */
	unsigned long missing_bytes;	/* 0: nothing */
	/* What cannot be faulted in is an error. */
	unsigned int hopeless_count;
	unsigned long hopeless[8];
};

/*
 * Offset of the counts, and of the counters, in a CPU's memory: the same for all CPUs, so that a
 * hit need not load it.
 */
#define SPILE_COUNTS_AT ALIGN(sizeof(struct spile_cpu), 64)
static inline size_t spile_counters_at(void)
{
	return ALIGN(SPILE_COUNTS_AT +
		     array_size(spile_script.probe_count, sizeof(struct spile_counts)), 64);
}

/*
 * A pointer, because the kernel reserves only 8 KB for the per-CPU variables of all
 * modules (PERCPU_MODULE_RESERVE), which a dozen such modules would fill. It is also found
 * with one instruction less.
 */
DECLARE_PER_CPU(struct spile_cpu *, spile_cpus);

/* That of this CPU. Preemption is off. */
static __always_inline struct spile_cpu *spile_this_cpu(void)
{
	return this_cpu_read(spile_cpus);
}

static inline struct spile_cpu *spile_cpu_of(struct spile_context *c)
{
	return container_of(c, struct spile_cpu, context);
}

/* Discards what the runtime keeps for one run only. The context is as between runs then. */
static inline void spile_forget_run(struct spile_cpu *cpu)
{
	if (cpu->context.stale & SPILE_STALE_RUN) {
		cpu->match.groups = 0;
		cpu->token_end = 0;
		cpu->stack_kind = SPILE_STACK_NONE;
		cpu->other.have_arguments = false;
	}
	cpu->context.stale = 0;
}

/* The probed registers; NULL if the probe has none, as with a tracepoint. */
static inline struct pt_regs *spile_registers(const struct spile_context *c)
{
	return SPILE_REGS_ARE_WORDS(c->probe->kind) ? NULL : (struct pt_regs *)c->regs;
}

static inline unsigned int spile_message_bytes(void)
{
	return max_t(unsigned int, spile_script.string_bytes, SPILE_MESSAGE_MAX);
}

struct spile_site;

/*
 * Runs the handler of a site if the session is in `state` and nothing forbids it,
 * with everything around it: counting, locks, errors. Any context, preemption
 * off. True when the handler ran and ended without an error.
 */
bool spile_context_run(struct spile_site *site, enum spile_state state, unsigned long *regs);

/* For records of the session itself. Process context; spile_context_claim() disables preemption. */
struct spile_cpu *spile_context_claim(void);
/* The same; NULL: a begin or end probe has had the CPU's context for 10 ms or more. */
struct spile_cpu *spile_context_claim_soon(void);
void spile_context_release(struct spile_cpu *cpu);

/*
 * Waits until no handler that began before runs any more, except for those that only count.
 * Process context.
 */
void spile_context_wait(void);

int __must_check spile_context_init(void);
void spile_context_exit(void);

#endif
