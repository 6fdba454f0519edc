/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The owner of the session: the user of the process that has loaded the module. */
#ifndef SPILE_OWNER_H
#define SPILE_OWNER_H

#include <linux/compiler.h>
#include <linux/types.h>
#include <linux/uidgid.h>

#include "abi/abi.h"

struct mm_struct;
struct task_struct;

/* Called first when the module is loaded, in the process that loads it. */
void spile_owner_init(void);
void spile_owner_exit(void);

/*
 * Whether the current process may use the device: it is the owner's, or may load
 * modules.
 */
bool spile_owner_permits(void);

/*
 * Whether the owner may look into the current process: as for ptrace(2) without capabilities
 * (__ptrace_may_access() in kernel/ptrace.c, cap_ptrace_access_check()) all its user and group ids
 * are the owner's, it has no capability that the owner lacks, and it was not made undumpable, as by
 * exec of a set-id program, by setting ids or by prctl(2). Root may look into any process. In any
 * context.
 */
bool spile_owner_sees_current(void);
/*
 * The same for a process with that memory, which need not be the current one. Not for root's
 * sessions.
 */
bool spile_owner_sees_mm(struct mm_struct *mm);
/* One of the tasks that use the memory; NULL: there is none. Under RCU. */
const struct task_struct *spile_user_of_mm(struct mm_struct *mm);

/*
 * Probes are for processes that the owner may look into, and have no effect in others: the script
 * says so, and the owner is not root. Set before probes are armed.
 */
extern bool spile_owner_is_limited;
static inline bool spile_owner_ignores_current(void)
{
	return unlikely(spile_owner_is_limited) && !spile_owner_sees_current();
}

/*
 * Whether it is root or the owner. Tables that the programs of all users fill keep room for these, so
 * that no other user can take all of it. In any context.
 */
bool spile_owner_prefers(kuid_t uid);

/*
 * Whether a start that fails may say so in the kernel's log: the starts of users could fill it. Process
 * context.
 */
bool spile_owner_may_log(void);

/* The current process has opened the device for a session, or has closed it. */
void spile_owner_opened(void);
void spile_owner_closed(void);
/*
 * The id of the current process where the one that has opened it runs (a PID namespace); 0: there it
 * has none. In any context.
 */
u32 spile_owner_process(void);

/* Records that SPILE_SET has changed a global. */
void spile_owner_has_set(void);

void spile_owner_state(struct spile_owner *state);

/* Bytes that the session may still allocate; U64_MAX: no limit. */
u64 spile_owner_left(void);
/* Whether there is one: the session is one of a user with limits. In any context. */
bool spile_owner_has_limit(void);

#endif
