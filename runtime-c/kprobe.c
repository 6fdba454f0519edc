// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Probes at an address. At a function's entry ftrace calls us where the kernel supports
 * it (entry.c); elsewhere it is a kprobe, which the kernel optimises to a jump where it
 * can.
 *
 * An entry in the kernel that ftrace serves needs no kprobe at all. Every other site is
 * registered as one, which checks the address, refuses what must not be probed and
 * resolves names in modules. If ftrace can serve it, the kprobe stays disabled and
 * costs nothing.
 *
 * Sites at one address share a kprobe (arm_kprobe_beside()): the kernel would run several
 * kprobes in the reverse order of the script, and registering one takes long. Copies of
 * inlined functions often begin with copies of others: the 40,401 in xfs and btrfs (6.1)
 * begin at 24,379 addresses. Sites that ftrace refuses share one too (share_refused()).
 *
 * All are registered disabled, and enabled together afterwards, while the kernel's
 * optimizer is kept away (optimizer.h).
 */
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/sort.h>
#include <linux/uaccess.h>

#include "arming.h"
#include "attach.h"
#include "code_end.h"
#include "context.h"
#include "entry.h"
#include "family.h"
#include "optimizer.h"
#include "return_pool.h"
#include "run.h"
#include "session.h"
#include "site.h"

enum { MANY = 500 };	/* probes at entries of functions that become kprobes: the user is warned */
static unsigned int kprobes_at_entries;	/* of those being armed */

/* Preemption is off. */
static int handle_hit(struct kprobe *kprobe, struct pt_regs *regs)
{
	spile_run_site(container_of(kprobe, struct spile_site, kprobe), (unsigned long *)regs);
	return 0;
}
NOKPROBE_SYMBOL(handle_hit);

/* The same, of a kprobe that serves several sites. */
static int handle_shared_hit(struct kprobe *kprobe, struct pt_regs *regs)
{
	struct spile_site *site = container_of(kprobe, struct spile_site, kprobe);

	for (; site; site = site->beside)
		spile_run_site(site, (unsigned long *)regs);
	return 0;
}
NOKPROBE_SYMBOL(handle_shared_hit);

/*
 * A kprobe with one is not optimised to a jump (kernel/kprobes.c, optimize_kprobe()). The
 * kernel looks for jumps into the five bytes of that jump in the code of one symbol: not
 * in that of a function's cold part, nor for targets of jump labels that are off. Who
 * came in by such a jump would run the rest of it as instructions.
 */
static void prevent_optimization(struct kprobe *kprobe, struct pt_regs *regs, unsigned long flags)
{
}
NOKPROBE_SYMBOL(prevent_optimization);

#ifdef SPILE_HAVE_KPROBE_FAULT_HANDLER
/*
 * Also for a kretprobe's kprobe. Faults in the handlers of other kprobes at the same place stay
 * counted as missed hits. The fault itself is left to the kernel.
 */
static int count_fault(struct kprobe *kprobe, struct pt_regs *regs, int trap)
{
	atomic_long_inc(&container_of(kprobe, struct spile_site, kprobe)->faults);
	return 0;
}
NOKPROBE_SYMBOL(count_fault);
#endif

void spile_kprobe_count_faults(struct spile_site *site)
{
	atomic_long_set(&site->faults, 0);
#ifdef SPILE_HAVE_KPROBE_FAULT_HANDLER
	site->kprobe.fault_handler = count_fault;
#endif
}

unsigned long spile_kprobe_missed(const struct spile_site *site)
{
	unsigned long faults = atomic_long_read(&site->faults);

	/* nmissed is raised first; registering the kprobe clears it. */
	return site->kprobe.nmissed - min(faults, site->kprobe.nmissed);
}

static void prepare(struct spile_site *site)
{
	spile_attach_place(&site->kprobe, site);
	spile_kprobe_count_faults(site);
	site->kprobe.pre_handler = handle_hit;
	site->kprobe.post_handler = site->probe->stays_breakpoint ? prevent_optimization : NULL;
	site->registered = false;
	site->served_by = NULL;
	site->beside = NULL;
}

/* What ftrace refuses in the end becomes a kprobe (arm_entries()). */
static bool arm_kprobe_by_ftrace(struct spile_site *site)
{
	prepare(site);
	return spile_entry_is_plain(site) && spile_entry_add(site);
}

/*
 * A call with a prefix ("cs call"), of six bytes: since 5.13 the kernel executes a call for
 * a kprobe and then returns behind its fifth byte (int3_emulate_call()). The compiler
 * leaves out those that it sees.
 */
static bool is_prefixed_call(const struct kprobe *kprobe)
{
	u8 second;

	return kprobe->opcode == 0x2e &&
	       !copy_from_kernel_nofault(&second, (const u8 *)kprobe->addr + 1, sizeof(second)) &&
	       second == 0xe8;
}

static int arm_kprobe_site(struct spile_site *site)
{
	int error;

	prepare(site);
	site->kprobe.flags = KPROBE_FLAG_DISABLED;
	error = spile_code_end_check(site) ?: register_kprobe(&site->kprobe);
	if (!error && is_prefixed_call(&site->kprobe)) {
		unregister_kprobe(&site->kprobe);
		spile_session_emit(
			SPILE_RECORD_WARN,
			"probe %s: a call with a prefix is there, after which the kernel would go on in its middle: a breakpoint would crash it",
			site->probe->point);
		error = -EILSEQ;
	}
	site->registered = !error;
	if (!error)
		spile_kprobe_serve(site);
	return error;
}

/*
 * The kprobe of `first`, whose last site is `before`, serves `site` too. It is not enabled
 * yet, so its handler can be another one, and sees the pointers.
 */
static void share(struct spile_site *first, struct spile_site *before, struct spile_site *site)
{
	first->kprobe.pre_handler = handle_shared_hit;
	first->served_by = first;
	site->served_by = first;
	before->beside = site;
}

static bool arm_kprobe_beside(struct spile_site *before, struct spile_site *site)
{
	struct spile_site *first = before->served_by ?: before;

	if (!first->registered || !first->to_enable)
		return false;
	prepare(site);
	share(first, before, site);
	return true;
}

static int enable(struct spile_site *site)
{
	int error;

	if (site->registered)
		return enable_kprobe(&site->kprobe);
	if (site->probe->kind == SPILE_PROBE_KRETPROBE)
		return spile_return_register_own(site);
	error = spile_code_end_check(site) ?: register_kprobe(&site->kprobe);
	site->registered = !error;
	return error;
}

/*
 * Places for a kprobe that is never hit: in a section of their own, as no probe may be in
 * the others (text.lds). The first of them is taken, because the kernel may read past the
 * last function of a module (spile_code_end_check()).
 */
static noinline __section(".spile.place") void never_called(void)
{
	asm volatile("" ::: "memory");
}

/* Not the same, or the compiler makes one of the two. */
static noinline __section(".spile.place") void never_called_either(void)
{
	asm volatile("nop" ::: "memory");
}

static int compare_times(const void *a, const void *b)
{
	u64 one = *(const u64 *)a, two = *(const u64 *)b;

	return one < two ? -1 : one > two;
}

/*
 * With a handler after the instruction: the kernel's optimizer, which would hold the lock
 * of all kprobes, leaves it. The median, as some wait for another CPU or a host.
 */
u64 spile_kprobe_enabling_time(void)
{
	enum { TIMES = 15 };
	static struct kprobe kprobe;
	u64 times[TIMES] = {}, began;
	unsigned int i;

	memset(&kprobe, 0, sizeof(kprobe));
	kprobe.addr = (kprobe_opcode_t *)min_t(unsigned long, (unsigned long)never_called,
					       (unsigned long)never_called_either);
	kprobe.post_handler = prevent_optimization;
	kprobe.flags = KPROBE_FLAG_DISABLED;
	if (register_kprobe(&kprobe))
		return 0;
	for (i = 0; i < TIMES; i++) {
		began = ktime_get_mono_fast_ns();
		if (enable_kprobe(&kprobe))
			break;
		times[i] = ktime_get_mono_fast_ns() - began;
		disable_kprobe(&kprobe);
	}
	unregister_kprobe(&kprobe);
	sort(times, TIMES, sizeof(*times), compare_times, NULL);
	return times[TIMES / 2];
}

/* Before or after an endbr64. */
static bool is_at_function_start(const void *place)
{
	char name[KSYM_SYMBOL_LEN];

	snprintf(name, sizeof(name), "%pS", place);
	return strstr(name, "+0x0/") || strstr(name, "+0x4/");
}

/*
 * Users expect probes at function entries to be cheap to arm, but a kprobe takes the
 * kernel some milliseconds.
 */
static void warn_of_many(const struct spile_site *site)
{
	if (site->kprobe.flags & KPROBE_FLAG_FTRACE)
		return;
	if (kprobes_at_entries < MANY && is_at_function_start(site->kprobe.addr) &&
	    ++kprobes_at_entries == MANY)
		spile_session_emit(
			SPILE_RECORD_WARN,
			"%u entries of functions and more are not served by ftrace, which their code was built without: they become kprobes one by one, which takes long",
			MANY);
}

/* A kretprobe's kprobe is in the same place. */
void spile_kprobe_serve(struct spile_site *site)
{
	bool is_entry = site->kprobe.flags & KPROBE_FLAG_FTRACE && spile_entry_may_be(site);

	site->to_enable = !is_entry || !spile_entry_add(site);
	if (site->to_enable)
		warn_of_many(site);
}

/*
 * ftrace has refused `first`, whose instruction only looks like an entry: a call. The
 * others there were refused with it. Kretprobes have no kprobe to share.
 */
static void share_refused(struct spile_site *first)
{
	struct spile_site *before = first, *site;

	if (first->probe->kind != SPILE_PROBE_KPROBE)
		return;
	for (site = first->same; site; site = site->same) {
		if (site->family != first->family || !spile_entry_refused(site) ||
		    !spile_site_may_share(first, site))
			continue;
		site->by_entry = false;
		share(first, before, site);
		before = site;
	}
}

enum { LEFT_AT_ONCE = 256 };	/* one wait for all CPUs serves many */

/* Sites of one kind that are to be unregistered; under spile_session.lock. */
static struct spile_site *unarmed[LEFT_AT_ONCE];
static unsigned int unarmed_count;

static void leave_gathered(int error)
{
	unsigned int registered = 0, i;

	spile_return_pool_leave(unarmed, unarmed_count);
	for (i = 0; i < unarmed_count; i++) {
		/* That of a kretprobe begins with its kprobe. */
		if (unarmed[i]->registered)
			spile_sites_room[registered++] = &unarmed[i]->kprobe;
		unarmed[i]->registered = false;
	}
	if (registered && unarmed[0]->probe->kind == SPILE_PROBE_KRETPROBE)
		unregister_kretprobes((struct kretprobe **)spile_sites_room, registered);
	else if (registered)
		unregister_kprobes((struct kprobe **)spile_sites_room, registered);
	for (i = 0; i < unarmed_count; i++)
		spile_site_unarmed(unarmed[i], error);
	unarmed_count = 0;
}

/*
 * Of a kprobe that could not be enabled. Sites that ftrace refused together have kprobes of
 * their own that are registered, besides the one that they share now. They are gathered:
 * leave_gathered() follows.
 */
static void leave_unarmed(struct spile_site *site, int error)
{
	for (; site; site = site->beside) {
		if (unarmed_count == LEFT_AT_ONCE ||
		    (unarmed_count && unarmed[0]->probe->kind != site->probe->kind))
			leave_gathered(error);
		unarmed[unarmed_count++] = site;
	}
}

/* The entries that were added get their hits from here on, or become kprobes. */
static void arm_entries(void)
{
	int refusal = spile_entry_commit();
	unsigned int refused = 0, i;
	int error, last = 0;

	if (!refusal)
		return;
	for (i = 0; i < spile_script.probe_count; i++)
		refused += spile_entry_refused(&spile_sites[i]);
	if (refused > MANY && !spile_arming_ended())
		spile_session_emit(
			SPILE_RECORD_WARN,
			"%u probes at entries of functions are not served by ftrace (rc %d): they become kprobes one by one, which takes long",
			refused, refusal);
	for (i = 0; i < spile_script.probe_count; i++) {
		struct spile_site *site = &spile_sites[i];

		if (!spile_entry_refused(site))
			continue;
		share_refused(site);
		site->by_entry = false;
		/* As in enable_registered(). */
		if (!spile_arming_goes_on())
			continue;
		/* Where ftrace is switched off a kprobe on it would be armed and never hit. */
		error = refusal == -EBUSY ? refusal : enable(site);
		if (error && error != last)
			leave_gathered(last);
		if (error)
			leave_unarmed(site, last = error);
	}
	leave_gathered(last);
	spile_entry_forget_refused();
}

static unsigned int count_to_enable(void)
{
	unsigned int count = 0, i;

	for (i = 0; i < spile_script.probe_count; i++)
		count += spile_sites[i].to_enable;
	return count;
}

static void enable_registered(void)
{
	unsigned int count = count_to_enable(), i;
	int error, last = 0;

	spile_arming_enables(count);
	spile_optimizer_postpone(count);
	for (i = 0; i < spile_script.probe_count; i++) {
		struct spile_site *site = &spile_sites[i];

		if (!site->to_enable)
			continue;
		site->to_enable = false;
		/*
		 * Of arming that was ended the others stay disabled, and are unregistered together.
		 */
		if (!spile_arming_goes_on())
			continue;
		spile_optimizer_leave(&site->kprobe);
		error = enable_kprobe(&site->kprobe);
		spile_arming_enabled();
		if (error && error != last)
			leave_gathered(last);
		if (error)
			leave_unarmed(site, last = error);
	}
	spile_optimizer_resume();
	leave_gathered(last);
}

/*
 * ftrace calls first what was registered last. Before 5.15 nothing shows the return address
 * that a kretprobe has replaced: stacks at the entry are taken before it.
 */
static void commit(void)
{
	enable_registered();
	arm_entries();
	kprobes_at_entries = 0;
}

/* The one with its kprobe: itself, or another. */
static const struct spile_site *server_of(const struct spile_site *site)
{
	return site->served_by ?: site;
}

static void disarm_kprobe_sites(struct spile_site *const *sites, unsigned int count)
{
	enum { AT_ONCE = 256 };
	struct kprobe **kprobes = (struct kprobe **)spile_sites_room;
	unsigned int registered = 0, i;

	spile_entry_remove(sites, count);
	for (i = 0; i < count; i++)
		if (sites[i]->registered)
			kprobes[registered++] = &sites[i]->kprobe;
	/* One wait for all CPUs serves many. */
	for (i = 0; i < registered; i += AT_ONCE) {
		unsigned int some = min_t(unsigned int, registered - i, AT_ONCE);

		unregister_kprobes(kprobes + i, some);
		spile_sites_disarmed(some);
		cond_resched();
	}
	for (i = 0; i < count; i++) {
		sites[i]->missed += spile_kprobe_missed(server_of(sites[i]));
		sites[i]->by_entry = false;
		sites[i]->registered = false;
	}
}

void spile_kprobe_turn(struct spile_site *site, bool on)
{
	int error;

	if (site->by_entry && !on) {
		spile_entry_drop(site);
		return;
	}
	if (site->by_entry && spile_entry_add(site))
		return;
	if (site->to_enable && !on) {
		site->to_enable = false;
		return;
	}
	/*
	 * Now ftrace may serve others at the function, in a way that does not suffice for this one.
	 * Hits of it that ftrace has reported must not use what is going to be registered.
	 */
	if (site->by_entry) {
		WRITE_ONCE(site->by_entry, false);
		spile_context_wait();
	}
	error = on ? enable(site) : disable_kprobe(&site->kprobe);
	if (error)
		WRITE_ONCE(site->off, on);	/* tried again when the condition is looked at */
}

static void count_missed_hits(const struct spile_site *site, struct spile_counters *counters)
{
	counters->nested += spile_kprobe_missed(server_of(site));
}

static u32 mechanism(const struct spile_site *site)
{
	if (site->by_entry)
		return spile_entry_is_whole(site) ? SPILE_BY_FTRACE_WHOLE : SPILE_BY_FTRACE;
	return server_of(site)->kprobe.flags & KPROBE_FLAG_FTRACE ? SPILE_BY_KPROBE_FTRACE :
								    SPILE_BY_KPROBE;
}

const struct spile_family spile_kprobe_family = {
	.kind = SPILE_PROBE_KPROBE,
	.type = "kprobe",
	.may_be_sampled = true,
	.mechanism = mechanism,
	.arm_cheaply = arm_kprobe_by_ftrace,
	.arm = arm_kprobe_site,
	.arm_beside = arm_kprobe_beside,
	.measure_enabling = spile_kprobe_enabling_time,
	.commit = commit,
	.disarm = disarm_kprobe_sites,
	.turn = spile_kprobe_turn,
	.missed = count_missed_hits,
};
