// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One gate for each module. Handlers read the settings under RCU (they run with
 * preemption off); a change is made in the copy that is not in use.
 */
#include <linux/atomic.h>
#include <linux/cgroup.h>
#include <linux/cred.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/pid.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/time64.h>
#include <linux/uaccess.h>
#include <linux/uidgid.h>

#include "builtins.h"
#include "context.h"
#include "gate.h"
#include "memory.h"
#include "ring.h"
#include "session.h"

/*
 * Only the session's worker writes gates, scoped and over: who sets the gate may be kept from
 * running, and must have no lock then for which others wait. It does not take spile_session.lock,
 * so that setting the gate does not wait for probes to be armed.
 */
static struct spile_gate gates[2];
/*
 * The processes of each gate, in the order of its process ids; referenced. A process id may be
 * reused when the process has ended, a struct pid is not.
 */
static struct pid *scoped[2][SPILE_GATE_SCOPES];
/* has expired once: stays so if the clock is set back */
static bool over[2];
static struct spile_gate __rcu *current_gate;	/* NULL: everything passes */
static atomic_t reported;	/* rewrites reported since the gate was set */

/* The limit: how many have passed in which second. */
static atomic64_t limited_second;
static atomic_t passed_in_second;

static bool is_among(u32 wanted, const __u32 *list, u32 count)
{
	u32 i;

	for (i = 0; i < count; i++)
		if (list[i] == wanted)
			return true;
	return !count;
}

/* A process is in its cgroup and in all above it. */
static bool is_in_cgroups(const struct spile_gate *gate)
{
#ifdef CONFIG_CGROUPS
	struct cgroup *group;
	u32 i;

	if (!gate->cgroup_count)
		return true;
	for (group = task_dfl_cgroup(current); group; group = cgroup_parent(group))
		for (i = 0; i < gate->cgroup_count; i++)
			if (cgroup_id(group) == gate->cgroups[i])
				return true;
	return false;
#else
	return !gate->cgroup_count;
#endif
}

static bool is_process_among(const struct spile_gate *gate)
{
	struct pid *const *processes = scoped[gate - gates];
	u32 i;

	for (i = 0; i < gate->pid_count; i++)
		if (processes[i] == task_tgid(current))
			return true;
	return !gate->pid_count;
}

static bool is_in_scope(const struct spile_gate *gate)
{
	return is_among(from_kuid(&init_user_ns, current_uid()), gate->uids, gate->uid_count) &&
	       is_among(from_kgid(&init_user_ns, current_gid()), gate->gids, gate->gid_count) &&
	       is_process_among(gate) &&
	       is_in_cgroups(gate);
}

/* A write that races with the change of the second may be counted in either. */
static bool is_under_limit(const struct spile_gate *gate)
{
	s64 second, before;

	if (!gate->per_second)
		return true;
	second = div_u64(ktime_get_mono_fast_ns(), NSEC_PER_SEC);
	before = atomic64_read(&limited_second);
	if (before != second && atomic64_cmpxchg(&limited_second, before, second) == before)
		atomic_set(&passed_in_second, 0);
	return atomic_inc_return(&passed_in_second) <= gate->per_second;
}

static bool has_expired(const struct spile_gate *gate)
{
	bool *is_over = &over[gate - gates];

	if (!gate->expires)
		return false;
	if (!READ_ONCE(*is_over) && ktime_get_real_fast_ns() >= gate->expires)
		WRITE_ONCE(*is_over, true);
	return READ_ONCE(*is_over);
}

static enum spile_gate_count judge(const struct spile_gate *gate)
{
	if (!gate)
		return SPILE_GATE_REWRITTEN;
	if (has_expired(gate))
		return SPILE_GATE_EXPIRED;
	if (!is_in_scope(gate))
		return SPILE_GATE_OUT_OF_SCOPE;
	if (!is_under_limit(gate))
		return SPILE_GATE_LIMITED;
	return gate->mode == SPILE_GATE_OBSERVE ? SPILE_GATE_OBSERVED : SPILE_GATE_REWRITTEN;
}

/* The upper half of a register that holds an int is undefined, mostly 0: -5 is then 4294967291. */
static s64 as_shown(u64 value)
{
	return value >> 32 ? (s64)value : (s64)(s32)value;
}

/* Describes the write, for messages. */
static void name_place(char *out, size_t bytes, enum spile_gate_place what, u64 place)
{
	const char *name;

	switch (what) {
	case SPILE_GATE_MEMORY:
		scnprintf(out, bytes, "memory at 0x%llx", place);
		break;
	case SPILE_GATE_USER_MEMORY:
		scnprintf(out, bytes, "user memory at 0x%llx", place);
		break;
	case SPILE_GATE_ARGUMENT:
		scnprintf(out, bytes, "argument %llu", place);
		break;
	case SPILE_GATE_SIGNAL:
		scnprintf(out, bytes, "signal to process %llu", place);
		break;
	case SPILE_GATE_PANIC:
		scnprintf(out, bytes, "panic() by process %llu", place);
		break;
	default:
		name = spile_register_name(place);
		scnprintf(out, bytes, "%sregister %s",
			  what == SPILE_GATE_RETURN_VALUE ? "return value, " : "",
			  name ? name : "?");
	}
}

static noinline void report(struct spile_context *c, bool done, enum spile_gate_place what,
			    u64 place, u64 before, u64 after)
{
	char where[48];

	name_place(where, sizeof(where), what, place);
	spile_ring_format(spile_cpu_of(c), SPILE_RECORD_REWRITE, 0,
			  "%s by %s(%d), uid %u: %s from %lld to %lld in probe %s",
			  done ? "rewritten" : "observed, not rewritten", current->comm,
			  task_tgid_nr(current), from_kuid_munged(&init_user_ns, current_uid()),
			  where, as_shown(before), as_shown(after), c->probe->point);
}

bool spile_gate_passes(struct spile_context *c, enum spile_gate_place what, u64 place, u64 before,
		       u64 after)
{
	struct spile_cpu *cpu = spile_cpu_of(c);
	const struct spile_gate *gate = rcu_dereference_sched(current_gate);
	enum spile_gate_count verdict = judge(gate);
	bool passes = verdict == SPILE_GATE_REWRITTEN;

	cpu->gate_counts[verdict]++;
	if (gate && (passes || verdict == SPILE_GATE_OBSERVED) &&
	    atomic_read(&reported) < gate->tell && atomic_inc_return(&reported) <= gate->tell)
		report(c, passes, what, place, before, after);
	return passes;
}

int spile_gate_write(struct spile_context *c, spile_ulong address, const void *from, size_t bytes)
{
	size_t shown = min(bytes, sizeof(u64));
	u64 before = 0, after = 0;

	memcpy(&after, from, shown);
	if (spile_memory_read(&before, address, shown, false))
		return -EFAULT;
	if (!spile_gate_passes(c, SPILE_GATE_MEMORY, address, before, after))
		return 0;
	return spile_memory_write(address, from, bytes);
}

/*
 * A kernel thread has no memory of its own and runs on that of the previous task. In an
 * NMI the page tables may be between two processes. copy_to_user_nofault() checks the
 * range; pages that are not resident are not faulted in.
 */
int spile_gate_write_user(struct spile_context *c, spile_ulong address, const void *from,
			  size_t bytes)
{
	size_t shown = min(bytes, sizeof(u64));
	u64 before = 0, after = 0;

	memcpy(&after, from, shown);
	if (!current->mm || in_nmi() || spile_memory_read(&before, address, shown, true))
		return -EFAULT;
	if (!spile_gate_passes(c, SPILE_GATE_USER_MEMORY, address, before, after))
		return 0;
	return copy_to_user_nofault((void __user *)(unsigned long)address, from, bytes);
}

void spile_set_register(struct spile_context *c, unsigned int offset, spile_long value)
{
	unsigned long *place = &c->regs[offset / sizeof(unsigned long)];

	enum spile_gate_place what = SPILE_GATE_REGISTER;
	u64 which = offset;

	if (c->regs == (unsigned long *)&spile_cpu_of(c)->other.regs) {
		spile_fail_text(c, "the hit's registers have been replaced and cannot be written");
		return;
	}
	if (SPILE_REGS_ARE_WORDS(c->probe->kind)) {
		what = SPILE_GATE_ARGUMENT;
		which = offset / sizeof(unsigned long) + 1;
	} else if (c->probe->kind == SPILE_PROBE_KRETPROBE ||
		   c->probe->kind == SPILE_PROBE_URETPROBE) {
		what = SPILE_GATE_RETURN_VALUE;
	}
	if (spile_gate_passes(c, what, which, *place, value))
		*place = value;
}

/* The copy must not be in use any more. */
static void put_processes(struct pid **processes)
{
	unsigned int i;

	for (i = 0; i < SPILE_GATE_SCOPES; i++) {
		put_pid(processes[i]);	/* may be 0 */
		processes[i] = NULL;
	}
}

struct gate_change {
	const struct spile_gate *gate;
	struct pid *processes[SPILE_GATE_SCOPES];
	/* who asks for it */
	struct task_struct *by;
	u32 uid;
	int error;
};

/* Ids are those of the caller's pid namespace. NULL: there is no such process any more. */
static void find_processes(struct gate_change *change)
{
	u32 i;

	for (i = 0; i < change->gate->pid_count; i++)
		change->processes[i] = find_get_pid(change->gate->pids[i]);
}

/*
 * An id that the current gate has too means the same process, even if that has ended and another
 * one has its id.
 */
static int keep_processes(struct gate_change *change, const struct spile_gate *now)
{
	u32 i, k;

	for (i = 0; i < change->gate->pid_count; i++) {
		for (k = 0; now && k < now->pid_count; k++) {
			if (now->pids[k] != change->gate->pids[i])
				continue;
			put_pid(change->processes[i]);
			change->processes[i] = get_pid(scoped[now - gates][k]);
			break;
		}
		if (!change->processes[i])
			return -ESRCH;
	}
	return 0;
}

static int change_gate(struct gate_change *change)
{
	const struct spile_gate *gate = change->gate;
	const struct spile_gate *now = rcu_dereference_protected(current_gate, true);
	struct spile_gate *next = now == &gates[0] ? &gates[1] : &gates[0];
	bool is_over;
	int error;

	/*
	 * Once expired, the gate stays closed until a new expiry is set, also if the clock is
	 * set back.
	 */
	is_over = gate->expires && (ktime_get_real_fast_ns() >= gate->expires ||
				    (now && now->expires == gate->expires && has_expired(now)));
	/* Otherwise the caller would believe that it is enforced. */
	if (is_over && now && gate->mode != SPILE_GATE_OBSERVE)
		return -ETIME;
	error = keep_processes(change, now);
	if (error)
		return error;
	memcpy(scoped[next - gates], change->processes, sizeof(change->processes));
	memset(change->processes, 0, sizeof(change->processes));
	*next = *gate;
	over[next - gates] = is_over;
	atomic_set(&reported, 0);
	rcu_assign_pointer(current_gate, next);
	/* When this returns the other copy is free for the next change. */
	spile_context_wait();
	if (now)
		put_processes(scoped[now - gates]);
	/* Makes the readers of records read the settings again. */
	if (spile_session_state == SPILE_STATE_RUNNING)
		spile_session_emit(SPILE_RECORD_REWRITE,
				   "from now on %s, as %s(%d), uid %u, has asked",
				   gate->mode == SPILE_GATE_OBSERVE ? "observed" : "enforced",
				   change->by->comm, task_tgid_nr(change->by), change->uid);
	return 0;
}

static void change_in_worker(void *argument)
{
	struct gate_change *change = argument;

	change->error = change_gate(change);
}

int spile_gate_set(const struct spile_gate *gate)
{
	struct gate_change change = {
		.gate = gate,
		.by = current,
		.uid = from_kuid_munged(&init_user_ns, current_uid()),
	};
	int error;

	if (gate->mode > SPILE_GATE_OBSERVE || gate->reserved ||
	    gate->uid_count > SPILE_GATE_SCOPES || gate->gid_count > SPILE_GATE_SCOPES ||
	    gate->pid_count > SPILE_GATE_SCOPES || gate->cgroup_count > SPILE_GATE_SCOPES)
		return -EINVAL;
	find_processes(&change);
	error = spile_session_ask_worker(change_in_worker, &change) ?: change.error;
	put_processes(change.processes);
	return error;
}

void spile_gate_exit(void)
{
	put_processes(scoped[0]);
	put_processes(scoped[1]);
}

void spile_gate_state(struct spile_gate_state *state)
{
	const struct spile_gate *now;
	int cpu, i;

	memset(state, 0, sizeof(*state));
	rcu_read_lock_sched();
	now = rcu_dereference_sched(current_gate);
	if (now) {
		state->gate = *now;
		/*
		 * When the loader reports the expiry it holds from then on, whether or
		 * not a hit has seen it, and even if the clock is set back.
		 */
		if (has_expired(now))
			state->gate.expires = min_t(u64, now->expires, ktime_get_real_fast_ns());
	}
	rcu_read_unlock_sched();
	for_each_possible_cpu(cpu)
		for (i = 0; i < SPILE_GATE_COUNTS; i++)
			state->counts[i] += READ_ONCE(per_cpu(spile_cpus, cpu)->gate_counts[i]);
}
