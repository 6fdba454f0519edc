// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Faults in a page of a process where the end of the session waits for it. So memory that some
 * user may provide when he likes, or never, is left out: not even SIGKILL ends the wait for a
 * FUSE server (request_wait_answer() in fs/fuse/dev.c). It ends that for a page of a network file
 * system whose server does not answer.
 */
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/string.h>
#include <linux/userfaultfd_k.h>

#include "features.h"
#include "page_in.h"
#include "session.h"

enum {
	LOCK_TRIES = 200,		/* half a millisecond each */
	PAGE_TRIES = 32,		/* a page may be taken away before it is used */
};

bool spile_is_served_by_process(const struct super_block *super)
{
	const char *type = super->s_type->name;

	return !strcmp(type, "fuse") || !strcmp(type, "fuseblk");
}

/*
 * Whether a process of a user decides when a missing page of this memory comes: FUSE,
 * userfaultfd(2).
 */
static bool is_provided_by_users(struct vm_area_struct *vma)
{
	return userfaultfd_armed(vma) ||
	       (vma->vm_file && spile_is_served_by_process(file_inode(vma->vm_file)->i_sb));
}

static bool may_access(const struct vm_area_struct *vma, unsigned int flags)
{
	return vma->vm_flags & (flags & FAULT_FLAG_WRITE ? VM_WRITE : VM_READ);
}

int spile_page_in(unsigned long address, unsigned int flags)
{
	struct mm_struct *mm = current->mm;
	struct vm_area_struct *vma = find_vma(mm, address);
	vm_fault_t result = VM_FAULT_SIGSEGV;

	/*
	 * Not fixup_user_fault(): it either waits so that no signal ends it, or takes the lock again so,
	 * which another thread may hold for as long as a user likes.
	 */
	if (vma && vma->vm_start <= address && may_access(vma, flags) && !is_provided_by_users(vma))
		result = handle_mm_fault(vma, address,
					 flags | FAULT_FLAG_ALLOW_RETRY | FAULT_FLAG_KILLABLE, NULL);
	if (spile_fault_is_completed(result))
		return 0;
	if (result & VM_FAULT_RETRY)
		return -EAGAIN;
	mmap_read_unlock(mm);
	return result & VM_FAULT_ERROR ? -EFAULT : 0;
}

/* Another thread may hold the lock while it waits for a page that a user withholds. */
bool spile_lock_maps(struct mm_struct *mm, bool while_running)
{
	unsigned int tries;

	for (tries = 0; tries < LOCK_TRIES; tries++) {
		if (mmap_read_trylock(mm))
			return true;
		if ((while_running && READ_ONCE(spile_session_state) != SPILE_STATE_RUNNING) ||
		    fatal_signal_pending(current))
			return false;
		usleep_range(300, 500);
	}
	return false;
}

bool spile_page_in_soon(unsigned long address, unsigned int flags, bool while_running)
{
	unsigned int tries = 0;
	int error;

	do {
		if (!spile_lock_maps(current->mm, while_running))
			return false;
		error = spile_page_in(address, flags);
	} while (error == -EAGAIN && ++tries < PAGE_TRIES);
	return !error;
}
