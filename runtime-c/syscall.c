// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Probes at system calls: one callback at each of the tracepoints sys_enter and sys_exit, which
 * finds the sites of a call by its number. So a call without a probe costs one look-up, however
 * many probes there are.
 *
 * A handler's registers are words: the six arguments, the returned value, the number.
 */
#include <linux/err.h>
#include <linux/irqflags.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <asm/syscall.h>

#include "script.h"
#include "builtins.h"
#include "budget.h"
#include "context.h"
#include "family.h"
#include "guard.h"
#include "owner.h"
#include "session.h"
#include "site.h"
#include "run.h"
#include "syscall_compat.h"
#include "syscall_entry.h"

enum {
	SYSCALL_NUMBERS = 512,		/* more than any table has */
	SYSCALL_ANY = SYSCALL_NUMBERS,		/* sites for all calls */
	SYSCALL_WORDS = SPILE_SYSCALL_NUMBER + 1,
};

/*
 * Heads of the sites' lists: by direction (1: returns), by kind of program (1:
 * 32-bit), by number. Written under spile_session.lock, read by hits; a site is
 * only taken out when its callback has been unregistered.
 */
static struct spile_site *heads[2][2][SYSCALL_NUMBERS + 1];

static bool entries_wanted;	/* an armed return probe saves values at the entry */

static struct {
	struct tracepoint *tracepoint;	/* NULL before the look-up */
	void *function;			/* while registered */
} sources[2];

static void run_site(struct spile_site *site, unsigned long *words)
{
	struct saved_call *saved;

	if (likely(!site->probe->entry_handler)) {
		spile_context_run(site, SPILE_STATE_RUNNING, words);
		return;
	}
	/* Without its entry a return is not probed, as with kretprobes. */
	saved = spile_syscall_saved(site);
	if (!saved)
		return;
	spile_run(site, SPILE_STATE_RUNNING, SPILE_RUN_RETURNING, words,
		  spile_syscall_data(saved));
	spile_syscall_forget(saved);
}

static void run_list(struct spile_site *site, bool compat, unsigned long *words)
{
	for (; site; site = READ_ONCE(site->syscall.next[compat]))
		run_site(site, words);
}

static void save_list(struct spile_site *site, bool compat, unsigned long *words)
{
	for (; site; site = READ_ONCE(site->syscall.next[compat]))
		if (site->probe->entry_handler && !(site->sampled && spile_budget_skips(site)))
			spile_syscall_save(site, words);
}

/* Of a process that the owner may no longer see. */
static void forget_list(struct spile_site *site, bool compat, unsigned long *words)
{
	for (; site; site = READ_ONCE(site->syscall.next[compat])) {
		struct saved_call *saved =
			site->probe->entry_handler ? spile_syscall_saved(site) : NULL;

		if (saved)
			spile_syscall_forget(saved);
	}
}

/*
 * A call of a 32-bit program, which may stand for another call (socketcall and the like). Sites
 * of that other call get its arguments; sites of the call itself, and of any call, get the
 * arguments as passed.
 */
static void handle_compat_call(struct pt_regs *regs, long number, long result,
			       struct spile_site *const *by_number,
			       void (*act)(struct spile_site *site, bool compat,
					   unsigned long *words))
{
	unsigned long made[SYSCALL_WORDS], meant[SYSCALL_WORDS];
	unsigned long flags;

	if (number < 0 || number >= SYSCALL_NUMBERS)
		return;
	syscall_get_arguments(current, regs, made);
	/* The program gets the lower half; the upper half of some results is not cleared. */
	made[SPILE_SYSCALL_RESULT] = IS_ERR_VALUE(result) ? result : (u32)result;
	made[SPILE_SYSCALL_NUMBER] = number;
	memcpy(meant, made, sizeof(meant));
	meant[SPILE_SYSCALL_NUMBER] = spile_syscall_unwrap(number, meant);
	raw_local_irq_save(flags);
	act(READ_ONCE(by_number[meant[SPILE_SYSCALL_NUMBER]]), true, meant);
	if (meant[SPILE_SYSCALL_NUMBER] != number)
		act(READ_ONCE(by_number[number]), true, made);
	act(READ_ONCE(by_number[SYSCALL_ANY]), true,
	    meant[SPILE_SYSCALL_NUMBER] != number ? made : meant);
	raw_local_irq_restore(flags);
}

/* Any interruptible context of the calling task. Interrupts wait (run.h). */
static void handle_call(bool returning, struct pt_regs *regs, long number, long result,
			void (*act)(struct spile_site *site, bool compat, unsigned long *words))
{
	bool compat = spile_is_compat_call();
	struct spile_site *const *by_number = heads[returning][compat];
	struct spile_site *one =
		number >= 0 && number < SYSCALL_NUMBERS ? READ_ONCE(by_number[number]) : NULL;
	struct spile_site *any = READ_ONCE(by_number[SYSCALL_ANY]);
	unsigned long words[SYSCALL_WORDS];
	unsigned long flags;

	if (unlikely(compat)) {
		handle_compat_call(regs, number, result, by_number, act);
		return;
	}
	if (likely(!one && !any))
		return;
	syscall_get_arguments(current, regs, words);
	words[SPILE_SYSCALL_RESULT] = result;
	words[SPILE_SYSCALL_NUMBER] = number;
	raw_local_irq_save(flags);
	act(one, false, words);
	act(any, false, words);
	raw_local_irq_restore(flags);
}

/* exit() and exit_group(), which do not return: the tables are the kernel's ABI. */
static bool is_last(long number)
{
	if (spile_is_compat_call())
		return number == 1 || number == 252;
#ifdef CONFIG_X86_X32_ABI
	/* A task of a program for x32 that ended in a call would keep its saved values. */
	number &= ~(long)__X32_SYSCALL_BIT;
#endif
	return number == 60 || number == 231;
}

static void handle_enter(void *data, struct pt_regs *regs, long number)
{
	if (spile_owner_ignores_current())
		return;
	if (READ_ONCE(entries_wanted) && !is_last(number))
		handle_call(true, regs, number, 0, save_list);
	handle_call(false, regs, number, 0, run_list);
}

/*
 * rt_sigreturn() has restored the registers of the interrupted code, and -1 in place of
 * its own number, so that nothing is restarted. A program that makes call -1 gets
 * ENOSYS. A 32-bit program has two such calls.
 */
static long returned_from(struct pt_regs *regs, long result)
{
	long number = syscall_get_nr(current, regs);

	return number == -1 && result != -ENOSYS && !spile_is_compat_call() ? 15 : number;
}

static void handle_exit(void *data, struct pt_regs *regs, long result)
{
	handle_call(true, regs, returned_from(regs, result), result,
		    spile_owner_ignores_current() ? forget_list : run_list);
}

static void find_source(struct tracepoint *tracepoint, void *data)
{
	int i;

	for (i = 0; i < 2; i++)
		if (!strcmp(tracepoint->name, i ? "sys_exit" : "sys_enter"))
			sources[i].tracepoint = tracepoint;
}

static int open_source(bool returning)
{
	int error;

	if (sources[returning].function)
		return 0;
	if (!sources[returning].tracepoint)
		for_each_kernel_tracepoint(find_source, NULL);
	if (!sources[returning].tracepoint)
		return -ENOENT;
	sources[returning].function = returning ? (void *)handle_exit : (void *)handle_enter;
	error = tracepoint_probe_register(sources[returning].tracepoint,
					  sources[returning].function, NULL);
	if (error)
		sources[returning].function = NULL;
	return error;
}

static void close_source(bool returning)
{
	WARN_ON_ONCE(tracepoint_probe_unregister(sources[returning].tracepoint,
						 sources[returning].function, NULL));
	sources[returning].function = NULL;
}

/* Appends, so that sites of one call run in the script's order. */
static void append(struct spile_site *site, bool compat, int number)
{
	struct spile_site **place;

	if (number == SPILE_NO_SYSCALL || number >= SYSCALL_NUMBERS)
		return;
	place = &heads[site->probe->syscall.returning][compat]
		      [number == SPILE_ANY_SYSCALL ? SYSCALL_ANY : number];
	while (*place)
		place = &(*place)->syscall.next[compat];
	site->syscall.next[compat] = NULL;
	/* Release: for the site's fields; pairs with the loads of heads and next at hits. */
	smp_store_release(place, site);
}

static int arm_syscall(struct spile_site *site)
{
	const struct spile_syscall *syscall = &site->probe->syscall;
	bool was_open = sources[syscall->returning].function;
	int error = open_source(syscall->returning);

	if (error)
		return error;
	/* Before anything leads to the site: one that is not armed is not disarmed either. */
	if (site->probe->entry_handler) {
		error = open_source(false);
		if (error) {
			if (!was_open) {
				close_source(syscall->returning);
				tracepoint_synchronize_unregister();
			}
			return error;
		}
		WRITE_ONCE(entries_wanted, true);
	}
	append(site, false, syscall->number);
	append(site, true, syscall->compat_number);
	return 0;
}

static void count_unsaved(const struct spile_site *site, struct spile_counters *counters)
{
	counters->return_misses += atomic_long_read(&site->syscall.unsaved);
}

/* No site is in a module, so all are disarmed together. */
static void disarm_syscalls(struct spile_site *const *sites, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < 2; i++)
		if (sources[i].function)
			close_source(i);
	tracepoint_synchronize_unregister();
	memset(heads, 0, sizeof(heads));
	entries_wanted = false;
	for (i = 0; i < count; i++)
		sites[i]->return_missed += atomic_long_xchg(&sites[i]->syscall.unsaved, 0);
}

const struct spile_family spile_syscall_family = {
	.kind = SPILE_PROBE_SYSCALL,
	.type = "syscall",
	.may_be_sampled = true,
	.init = spile_syscall_entry_init,
	.exit = spile_syscall_entry_exit,
	.by = SPILE_BY_TRACEPOINT,
	.arm = arm_syscall,
	.disarm = disarm_syscalls,
	.missed = count_unsaved,
};

#define SPILE_SYSCALL(number, name) [number] = #name,
static const char *const native_names[] = {
#include "syscalls_x86_64.h"
};
static const char *const compat_names[] = {
#include "syscalls_i386.h"
#include "syscalls_wrapped.h"
};
#undef SPILE_SYSCALL

/* The name in the ABI of the current task; "" for a number without a name. */
unsigned int spile_fn_syscall_name(struct spile_context *c, spile_long number, char *out)
{
	bool compat = current->mm && spile_is_compat_call();
	size_t count = compat ? ARRAY_SIZE(compat_names) : ARRAY_SIZE(native_names);
	const char *name = "";

	if (number >= 0 && number < count)
		name = (compat ? compat_names : native_names)[number] ?: "";
	return spile_string_copy(out, (struct spile_string){ name, strlen(name) });
}

spile_long spile_fn_syscall_num(struct spile_context *c, struct spile_string name)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(native_names); i++)
		if (native_names[i] && strlen(native_names[i]) == name.length &&
		    !memcmp(native_names[i], name.text, name.length))
			return i;
	return -1;
}

/*
 * Outside the probes of system calls: that of the registers set by
 * __set_syscall_pt_regs(), or of the call that the current task is in.
 */
spile_long spile_fn___syscall_number(struct spile_context *c)
{
	const struct spile_other_registers *other = &spile_cpu_of(c)->other;
	long number = -1;

	if (c->probe->kind == SPILE_PROBE_SYSCALL)
		return (long)c->regs[SPILE_SYSCALL_NUMBER];
	if (other->have_arguments)
		number = other->syscall_number;
	else if (current->mm)
		number = syscall_get_nr(current, task_pt_regs(current));
	if (number < 0)
		spile_fail_text(c, "not in a system call");
	return number;
}
