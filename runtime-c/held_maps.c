// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * To place or remove a breakpoint the kernel waits for the lock of the mappings of each process
 * that maps the file, and no process of the machine can fork meanwhile (register_for_each_vma()
 * in kernel/events/uprobes.c). Any user can make a process that holds its lock for as long as
 * he likes, by a page fault in a file system that he serves (FUSE); one whose NFS server is gone
 * does the same. So this is waited for before, where nobody else waits.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/printk.h>
#include <linux/rbtree.h>
#include <linux/rcupdate.h>
#include <linux/rwsem.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "arming.h"
#include "held_maps.h"
#include "session.h"
#include "site.h"

enum {
	MOST_HELD_MAPS = 256,		/* processes whose lock is held, at one moment */
	MOST_ROUNDS = 5,
	MOST_LOOK_MILLISECONDS = 3000,	/* of all of them; the last wait may pass it */
	SHORT_MILLISECONDS = 20,	/* after a longer wait another look is due */
	LONG_MILLISECONDS = 200,	/* on a busy machine a lock may be held for less */
	KNOWN_FREE_MILLISECONDS = 20,
	KNOWN_HELD_MILLISECONDS = 5000,
	MAPS_LOOKS = 50,			/* a tenth of a millisecond each */
	MAPS_HELD_MILLISECONDS = 2000,
	MAPS_KILL_MILLISECONDS = 50,
};

/* A thread that takes the lock as the kernel's uprobes do, but can be made to give up. */
struct maps_taking {
	struct mm_struct *mm;
	struct completion is_over;
	bool taken;
};

static int take_maps(void *argument)
{
	struct maps_taking *taking = argument;

	allow_signal(SIGKILL);
	if (!down_write_killable(&taking->mm->mmap_lock)) {
		up_write(&taking->mm->mmap_lock);
		taking->taken = true;
	}
	complete_all(&taking->is_over);
	/* The caller returns after this has ended, because the module's code must stay. */
	while (!kthread_should_stop())
		schedule_timeout_uninterruptible(1);
	return 0;
}

/* Whether the lock changes hands: some process may hold it at most moments. */
static bool are_maps_released(struct mm_struct *mm)
{
	struct maps_taking taking = { .mm = mm };
	struct task_struct *thread;
	unsigned int looks, wait;

	for (looks = 0; looks < MAPS_LOOKS; looks++) {
		if (!rwsem_is_locked(&mm->mmap_lock))
			return true;
		usleep_range(50, 100);
	}
	init_completion(&taking.is_over);
	thread = kthread_run(take_maps, &taking, "spile-maps");
	if (IS_ERR(thread))
		return false;
	/* More than once: a signal that comes before the thread allows it is lost. */
	for (wait = MAPS_HELD_MILLISECONDS;
	     !wait_for_completion_timeout(&taking.is_over, msecs_to_jiffies(wait));
	     wait = MAPS_KILL_MILLISECONDS)
		send_sig(SIGKILL, thread, 1);
	kthread_stop(thread);
	return taking.taken;
}

/*
 * The memories that map the file and are locked at the moment. Only their structs are kept: whoever
 * gives back the last reference of a process (mmput()) waits for its asynchronous I/O, for ever if
 * a file system's server does not answer. Those without a process are passed over, as by uprobes.
 */
static unsigned int find_locked_maps(struct inode *inode, struct mm_struct **held)
{
	struct address_space *mapping = inode->i_mapping;
	unsigned int count = 0;
	struct rb_node *node;

	i_mmap_lock_read(mapping);
	for (node = rb_first_cached(&mapping->i_mmap); node && count < MOST_HELD_MAPS;
	     node = rb_next(node)) {
		struct mm_struct *mm = rb_entry(node, struct vm_area_struct, shared.rb)->vm_mm;

		/* Most memories map a file several times, at places that are often neighbours. */
		if (!rwsem_is_locked(&mm->mmap_lock) || (count && held[count - 1] == mm) ||
		    !atomic_read(&mm->mm_users))
			continue;
		/* It has not been freed, because its mappings are still in the tree. */
		mmgrab(mm);
		held[count++] = mm;
	}
	i_mmap_unlock_read(mapping);
	return count;
}

static pid_t process_with_maps(const struct mm_struct *mm)
{
	struct task_struct *process, *thread;
	pid_t id = -1;

	rcu_read_lock();
	for_each_process(process) {
		for_each_thread(process, thread) {
			if (READ_ONCE(thread->mm) == mm)
				id = task_tgid_nr(process);
		}
	}
	rcu_read_unlock();
	return id;
}

/* A look at all processes that map a file. */
struct maps_look {
	struct inode *inode;
	struct mm_struct **held;	/* room */
	unsigned long end;		/* jiffies */
	bool arms;			/* made before arming ended, so it ends with that */
	unsigned int longest;		/* wait of a round for one of them, ms */
};

static int must_end(const struct maps_look *look)
{
	if (look->arms && spile_arming_ended())
		return -EINTR;
	return time_after(jiffies, look->end) ? -EAGAIN : 0;
}

static int find_holder(struct maps_look *look)
{
	unsigned int count = find_locked_maps(look->inode, look->held), i;
	int by = count == MOST_HELD_MAPS ? -EAGAIN : 0;

	look->longest = 0;
	for (i = 0; i < count; i++) {
		unsigned long start = jiffies;

		by = by ?: must_end(look);
		if (!by && !are_maps_released(look->held[i]))
			by = process_with_maps(look->held[i]);
		look->longest = max(look->longest, jiffies_to_msecs(jiffies - start));
		mmdrop(look->held[i]);
	}
	return by;
}

static int look_at_maps(struct inode *inode)
{
	struct maps_look look = {
		.inode = inode,
		.held = kmalloc_array(MOST_HELD_MAPS, sizeof(*look.held), GFP_KERNEL),
		.end = jiffies + msecs_to_jiffies(MOST_LOOK_MILLISECONDS),
		.arms = !spile_arming_ended(),
		.longest = UINT_MAX,
	};
	unsigned int round;
	int by = 0;

	if (!look.held)
		return -ENOMEM;
	/* While one lock was waited for, another may have been taken. */
	for (round = 0; round < MOST_ROUNDS && !by && look.longest > SHORT_MILLISECONDS; round++) {
		if (round && time_after(jiffies, look.end))
			break;
		by = find_holder(&look);
	}
	kfree(look.held);
	return by || look.longest <= LONG_MILLISECONDS ? by : -EAGAIN;
}

enum { MOST_KNOWN_FILES = 8 };

/* The last answers: thousands of sites of a file are not each worth a look. spile_session.lock */
static struct known_maps {
	struct inode *inode;
	unsigned long until;
	int by;
} known_maps[MOST_KNOWN_FILES], *last_known = known_maps;

/* What is known of the file; room for it, if nothing is. */
static struct known_maps *known_of(const struct inode *inode)
{
	static unsigned int next;
	unsigned int i;

	for (i = 0; i < MOST_KNOWN_FILES; i++)
		if (known_maps[i].inode == inode)
			return &known_maps[i];
	return &known_maps[next++ % MOST_KNOWN_FILES];
}

static int maps_held_by(struct inode *inode)
{
	struct known_maps *known = known_of(inode);
	int by;

	last_known = known;
	if (known->inode == inode && time_before(jiffies, known->until))
		return known->by;
	by = look_at_maps(inode);
	known->inode = inode;
	known->by = by;
	known->until = jiffies;
	/* A look that has ended with the arming says nothing. */
	if (by != -EINTR)
		known->until += msecs_to_jiffies(by ? KNOWN_HELD_MILLISECONDS :
						      KNOWN_FREE_MILLISECONDS);
	return by;
}

bool spile_maps_are_held(struct inode *inode)
{
	return maps_held_by(inode) != 0;
}

bool spile_maps_report(const struct spile_site *site, int error)
{
	int by = last_known->by;

	if (error != -EBUSY || !by)
		return false;
	if (by > 0)
		spile_session_emit(
			SPILE_RECORD_WARN,
			"probe %s: not armed: process %d has locked its mappings for seconds; no process could fork while the kernel waits for it",
			site->probe->point, by);
	else
		spile_session_emit(
			SPILE_RECORD_WARN,
			"probe %s: not armed: processes that map the file have locked their mappings; no process could fork while the kernel waits for them",
			site->probe->point);
	return true;
}

bool spile_maps_delay(struct inode *inode, const char *point)
{
	static bool told;
	int by = maps_held_by(inode);

	if (by > 0 && !told)
		pr_warn("%s: waiting for process %d, which has locked its mappings, to remove %s\n",
			THIS_MODULE->name, by, point);
	else if (by && !told)
		pr_warn("%s: waiting for processes that have locked their mappings, to remove %s\n",
			THIS_MODULE->name, point);
	told |= by != 0;
	return by != 0;
}
