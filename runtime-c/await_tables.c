// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Stacks of programs that the session has not seen before need tables, which the loader makes. The
 * task that hits a probe in a program may sleep before its handler runs, so it waits for them;
 * otherwise the first stacks of each program would end at the first frame without a frame pointer,
 * and short programs would have no others.
 *
 * The kernel holds the probe's lock meanwhile, so its removal waits for this. No task waits long,
 * none for a file for which another one has waited in vain, and after that none at all until the
 * loader hands over a table again: it may be stopped.
 */
#include <linux/hash.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/wait.h>

#include "context.h"
#include "session.h"
#include "uprobe.h"
#include "user_files.h"

enum {
	AWAIT_FILES = 32,		/* of a process */
	/* Nobody wakes a waiting task when the session ends or the loader is gone. */
	AWAIT_SLICE_MS = 50,
	READY_BITS = 9,
};

static DECLARE_WAIT_QUEUE_HEAD(tables_added);
/* The program that makes the tables, which must not wait for itself; never read. */
static const struct inode *maker;
static bool maker_is_late;
/* code_of_process() of those that need not wait. */
static u64 ready_processes[1 << READY_BITS];

/*
 * A number for what the process runs: another program or library changes it, and so does the next
 * process whose structure is at the same address.
 */
static u64 code_of_process(const struct mm_struct *mm)
{
	return hash_64((unsigned long)mm ^ mm->start_stack << 12, 64) +
	       hash_64(READ_ONCE(mm->exec_vm), 64);
}

static bool are_made(struct spile_user_file *const *files, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		/* Acquire: as in spile_user_file_table(). */
		if (!smp_load_acquire(&files[i]->table) && !READ_ONCE(files[i]->awaited))
			return false;
	return true;
}

static bool has_maker(void)
{
	return READ_ONCE(spile_session_state) == SPILE_STATE_RUNNING &&
	       READ_ONCE(spile_session.attended);
}

static void await_tables(void)
{
	struct spile_user_file *missing[AWAIT_FILES];
	unsigned int count, i, waited;

	preempt_disable();
	count = spile_user_files_request(spile_this_cpu(), missing, ARRAY_SIZE(missing));
	preempt_enable();
	for (waited = 0; waited < spile_script.stack_wait; waited += AWAIT_SLICE_MS)
		if (wait_event_killable_timeout(tables_added, are_made(missing, count),
						msecs_to_jiffies(min_t(unsigned int, AWAIT_SLICE_MS,
								       spile_script.stack_wait -
									       waited))) ||
		    !has_maker())
			return;
	WRITE_ONCE(maker_is_late, true);
	for (i = 0; i < count; i++)
		WRITE_ONCE(missing[i]->awaited, true);
}

void spile_tables_await(void)
{
	struct mm_struct *mm = current->mm;
	u64 code = code_of_process(mm);
	u64 *ready = &ready_processes[code >> (64 - READY_BITS)];

	if (likely(READ_ONCE(*ready) == code) || READ_ONCE(maker_is_late) || !has_maker())
		return;
	if (spile_current_program() != READ_ONCE(maker))
		await_tables();
	WRITE_ONCE(*ready, code);
}

void spile_tables_added(void)
{
	WRITE_ONCE(maker, spile_current_program());
	WRITE_ONCE(maker_is_late, false);
	wake_up_all(&tables_added);
}
