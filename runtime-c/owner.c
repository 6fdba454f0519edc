// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The owner is the user that a set-uid loader passes as a module parameter, together with the
 * session's other attributes; without it, the real user of the process that loads the module. A
 * process that may load modules may pass anything.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/moduleparam.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/spinlock.h>
#include <linux/timekeeping.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

#include "script.h"
#include "features.h"
#include "owner.h"
#include "ring.h"
#include "session.h"

static unsigned int stated_uid;
static unsigned int stated_gid;
static unsigned int stated_rank;
static unsigned int stated_service;
static unsigned long stated_most;
/* The parameters are not shown in sysfs. */
module_param_named(spile_uid, stated_uid, uint, 0);
module_param_named(spile_gid, stated_gid, uint, 0);
module_param_named(spile_rank, stated_rank, uint, 0);
module_param_named(spile_service, stated_service, uint, 0);
module_param_named(spile_most, stated_most, ulong, 0);

static kuid_t owner_uid __read_mostly;
static kgid_t owner_gid __read_mostly;
static u64 owner_loaded __read_mostly;
static bool has_set;
bool spile_owner_is_limited __read_mostly;

/* No mutex: the owner's process could be kept from running while it has it. */
static DEFINE_RAW_SPINLOCK(opener_lock);
static struct pid *opener;

/*
 * Of the process ids that the loader knows. It is only compared: the namespace may be gone, and
 * another one be where it was, when there is no loader any more.
 */
static const struct pid_namespace *loader_processes;
static unsigned int loader_level;

void spile_owner_init(void)
{
	owner_uid = stated_uid ? make_kuid(&init_user_ns, stated_uid) : current_uid();
	owner_gid = stated_uid ? make_kgid(&init_user_ns, stated_gid) : current_gid();
	owner_loaded = ktime_get_boottime_ns();
	spile_owner_is_limited =
		spile_script.own_processes && !uid_eq(owner_uid, GLOBAL_ROOT_UID);
}

void spile_owner_exit(void)
{
	put_pid(opener);
	opener = NULL;
}

/*
 * The effective user is compared: a loader that has given up its rights is the owner, and
 * another user who receives the descriptor cannot use it. User 0 without capabilities is root in
 * a container.
 */
bool spile_owner_permits(void)
{
	if (!uid_eq(owner_uid, GLOBAL_ROOT_UID) && uid_eq(current_euid(), owner_uid))
		return true;
	return capable(CAP_SYS_MODULE);
}

/*
 * Whether the owner, who has no capabilities in the initial user namespace, would have all of the
 * process there: that is so in namespaces that the owner has made, and in those below them.
 */
static bool covers_capabilities(const struct cred *cred)
{
	const struct user_namespace *ns = cred->user_ns;

	if (ns == &init_user_ns)
		return cap_isclear(cred->cap_permitted);
	while (ns->parent != &init_user_ns)
		ns = ns->parent;
	return uid_eq(ns->owner, owner_uid);
}

static bool is_visible(const struct task_struct *task, const struct cred *cred,
		       struct mm_struct *mm)
{
	return !(task->flags & PF_KTHREAD) && uid_eq(cred->uid, owner_uid) &&
	       uid_eq(cred->euid, owner_uid) && uid_eq(cred->suid, owner_uid) &&
	       gid_eq(cred->gid, owner_gid) && gid_eq(cred->egid, owner_gid) &&
	       gid_eq(cred->sgid, owner_gid) && covers_capabilities(cred) &&
	       spile_is_dumpable(task, mm);
}

bool spile_owner_sees_current(void)
{
	if (uid_eq(owner_uid, GLOBAL_ROOT_UID))
		return true;
	return current->mm && is_visible(current, current_cred(), current->mm);
}

const struct task_struct *spile_user_of_mm(struct mm_struct *mm)
{
#ifdef CONFIG_MEMCG
	return rcu_dereference(mm->owner);
#else
	struct task_struct *process, *thread;

	for_each_process_thread(process, thread)
		if (READ_ONCE(thread->mm) == mm)
			return thread;
	return NULL;
#endif
}

bool spile_owner_sees_mm(struct mm_struct *mm)
{
	const struct task_struct *task;
	bool is_seen;

	/* Not by mm->owner: that may be a process that shares it. */
	if (mm == current->mm)
		return spile_owner_sees_current();
	rcu_read_lock();
	task = spile_user_of_mm(mm);
	is_seen = task && is_visible(task, __task_cred(task), mm);
	rcu_read_unlock();
	return is_seen;
}

bool spile_owner_prefers(kuid_t uid)
{
	return uid_eq(uid, GLOBAL_ROOT_UID) || uid_eq(uid, owner_uid);
}

bool spile_owner_may_log(void)
{
	/* The kernel's own count: one of this module would begin anew with each start. */
	return uid_eq(owner_uid, GLOBAL_ROOT_UID) || __printk_ratelimit(__func__);
}

static void set_opener(struct pid *pid)
{
	raw_spin_lock(&opener_lock);
	swap(opener, pid);
	raw_spin_unlock(&opener_lock);
	put_pid(pid);
}

void spile_owner_opened(void)
{
	const struct pid_namespace *processes = task_active_pid_ns(current);

	WRITE_ONCE(loader_level, processes->level);
	WRITE_ONCE(loader_processes, processes);
	set_opener(get_pid(task_tgid(current)));
}

u32 spile_owner_process(void)
{
	unsigned int level = READ_ONCE(loader_level);
	const struct pid *pid;
	u32 number = 0;

	rcu_read_lock();
	pid = task_tgid(current);
	if (pid && level <= pid->level && pid->numbers[level].ns == READ_ONCE(loader_processes))
		number = pid->numbers[level].nr;
	rcu_read_unlock();
	return number;
}

void spile_owner_closed(void)
{
	set_opener(NULL);
}

void spile_owner_has_set(void)
{
	WRITE_ONCE(has_set, true);
}

void spile_owner_state(struct spile_owner *state)
{
	*state = (struct spile_owner){
		.uid = from_kuid(&init_user_ns, owner_uid),
		.gid = from_kgid(&init_user_ns, owner_gid),
		.rank = stated_rank,
		.flags = (stated_service ? SPILE_OWNER_SERVICE : 0) |
			 (READ_ONCE(has_set) ? SPILE_OWNER_HAS_SET : 0),
		.most_bytes = stated_most,
		.loaded = owner_loaded,
	};
	raw_spin_lock(&opener_lock);
	state->opener = pid_vnr(opener);
	raw_spin_unlock(&opener_lock);
}

bool spile_owner_has_limit(void)
{
	return stated_most != 0;
}

u64 spile_owner_left(void)
{
	u64 taken = spile_session.memory_bytes + READ_ONCE(spile_session.parts_bytes) +
		    spile_ring_memory();

	if (!stated_most)
		return U64_MAX;
	return stated_most > taken ? stated_most - taken : 0;
}
