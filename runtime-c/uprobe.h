/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Probes in programs: common parts of entries (uprobe.c), returns (uretprobe.c) and what
 * both need.
 */
#ifndef SPILE_UPROBE_H
#define SPILE_UPROBE_H

#include <linux/jiffies.h>
#include <linux/semaphore.h>
#include <linux/sched/signal.h>
#include <linux/uprobes.h>

#include "context.h"
#include "optional.h"
#include "script.h"
#include "site.h"

/*
 * The result of a handler in a process that is not followed: the breakpoint is removed from it,
 * unless it shares its memory with a followed one (vfork).
 */
int spile_uprobe_unwanted(const struct spile_probe *probe);
/* Registers site->uprobe.consumer at the site's place. Process context. */
int __must_check spile_uprobe_register(struct spile_site *site);
/*
 * spile_family.turn of both: the breakpoint is removed or put back, unless a process that maps
 * the file holds the lock of its mappings.
 */
void spile_uprobe_turn(struct spile_site *site, bool on);
/* spile_family.detach of both, and .disarm. */
bool __must_check spile_uprobe_detach(struct spile_site *site);
void spile_uprobes_disarm(struct spile_site *const *sites, unsigned int count);
/* spile_family.missed of both. */
void spile_uprobe_missed(const struct spile_site *site, struct spile_counters *counters);

/*
 * Locks what tasks of all users have for a moment, in handlers that may sleep and while probes are
 * armed. One of them may be kept from running meanwhile, for as long as its user likes: others do
 * not wait for that. A semaphore, since those who wait for one get it in turn. False: it could not
 * be locked in a fifth of a second.
 */
static inline bool spile_uprobe_lock(struct semaphore *lock)
{
	return !down_timeout(lock, HZ / 5);
}

/* program.c: the file of a site's program, and its processes. */

/*
 * The inode of the file, for breakpoints in it; it is opened and checked when first needed. An error
 * pointer if that fails or it can have none; a WARN record gives the reason once. Under spile_session.lock.
 */
struct inode *spile_program_inode(unsigned int program);
/* Whether the memory is that of a process which runs the program; negative: any program. */
bool spile_program_of_mm(spile_long program, const struct mm_struct *mm);
/* What the current process runs: an inode to be compared, never read. NULL: a kernel thread. */
const struct inode *spile_current_program(void);
void spile_programs_exit(void);
/* Opens all files, before probes are armed. Under spile_session.calls. */
void spile_programs_open(void);
/* Whether the file of the site's program could not be opened, which has been reported. */
bool spile_program_is_refused(const struct spile_site *site);

/*
 * follow.c: whether the current process has this id; 0: whether it is one of the session's,
 * which are target() and its descendants, or all without a target(). False for all that the
 * owner must not see.
 */
bool spile_follows_current(spile_long pid);
bool spile_follows_task(spile_long pid, const struct task_struct *task);
/* Whether this excludes any process. */
bool spile_follows_some(spile_long pid);
/* Whether one of these processes uses that memory. */
bool spile_follows_mm(spile_long pid, struct mm_struct *mm);
void spile_follow_exit(void);
/* Starts to follow the session's process, before probes are armed. Under spile_session.lock. */
int __must_check spile_follow_begin(void);

/*
 * begun.c: whether the current process is older than the session, and whether it is the first
 * time that this is asked of it; not the session's loader. The tracepoints are registered before
 * probes are armed, under spile_session.lock; handlers run from spile_begun_runs() on.
 */
bool spile_began_before(void);
bool spile_begun_is_new(void);
bool spile_thread_began_before(void);
bool spile_thread_begun_is_new(void);
int __must_check spile_begun_prepare(void);
/* Notes what the loader runs; in its process, before that. */
void spile_begun_by_loader(void);
void spile_begun_runs(void);
void spile_begun_exit(void);

/*
 * fault_in.c: runs the handler that a hit of this kind runs (enum spile_run_kind; 0: the site's
 * own, as spile_run_site()), and pages in the memory of the process that it reads, for probes with
 * `paging`. In the probed task, which may sleep. The result is that of spile_run_hit().
 */
bool spile_run_paging(struct spile_site *site, unsigned int kind, unsigned long slide,
		      unsigned long *regs, char *entry);

/*
 * await_tables.c: waits, for a limited time, until the files that the process runs have the tables
 * for its stacks, if the script takes some. In the probed task, which may sleep.
 */
void spile_tables_await(void);
static inline void spile_before_stacks(void)
{
	if (unlikely(spile_script.stack_wait))
		spile_call_if_there(spile_tables_await);
}

/*
 * program_counter.c: gives the current thread the events that @perf reads, if the script has
 * counters of programs. In the probed task, which may sleep.
 */
void spile_program_counters_begin(void);
static inline void spile_before_run(void)
{
	spile_call_if_there(spile_program_counters_begin);
	spile_before_stacks();
}

/* uprobe_entry.c: values saved at a function's entry for its return. In the probed task. */
struct spile_saved_entry;
int __must_check spile_uprobe_entry_init(void);
void spile_uprobe_entry_exit(void);
/*
 * Takes a place for the saved values of the call with that stack pointer; NULL if all are in
 * use.
 */
struct spile_saved_entry *spile_uprobe_entry_take(const struct spile_site *site, unsigned long sp);
struct spile_saved_entry *spile_uprobe_entry_find(const struct spile_site *site, unsigned long sp);
void spile_uprobe_entry_forget(struct spile_saved_entry *entry);
char *spile_uprobe_entry_data(struct spile_saved_entry *entry);

#endif
