// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Faults in a page of a process where the end of the session waits for it. So memory that some
 * user may provide when he likes, or never, is left out: not even SIGKILL ends the wait for a
 * FUSE server (request_wait_answer() in fs/fuse/dev.c).
 */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/userfaultfd_k.h>

#include "page_in.h"

/*
 * Whether a process of a user decides when a missing page of this memory comes: FUSE,
 * userfaultfd(2).
 */
static bool is_provided_by_users(struct vm_area_struct *vma)
{
	const char *type;

	if (userfaultfd_armed(vma))
		return true;
	if (!vma->vm_file)
		return false;
	type = file_inode(vma->vm_file)->i_sb->s_type->name;
	return !strcmp(type, "fuse") || !strcmp(type, "fuseblk");
}

int spile_page_in(unsigned long address, unsigned int flags)
{
	struct mm_struct *mm = current->mm;
	struct vm_area_struct *vma = find_vma(mm, address);

	if (!vma || vma->vm_start > address || is_provided_by_users(vma))
		return -EFAULT;
	/* Without the last argument the lock is not released meanwhile, and not waited for. */
	return fixup_user_fault(mm, address, flags, NULL);
}
