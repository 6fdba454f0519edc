// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copies to and from the memory of the current process, where the end of the session waits for
 * them. The kernel's own wait for as long as the provider of the memory likes.
 */
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/uaccess.h>

#include "page_in.h"
#include "user_copy.h"

enum { MOST_PAGE_INS = 32 };	/* of one page: it may be taken away before it is used */

static bool make_resident(unsigned long address, unsigned int flags)
{
	unsigned int tries = 0;
	int error;

	do {
		if (mmap_read_lock_killable(current->mm))
			return false;
		error = spile_page_in(untagged_addr(address), flags);
	} while (error == -EAGAIN && ++tries < MOST_PAGE_INS);
	return !error;
}

/* Bytes up to the end of the page. */
static size_t page_part(unsigned long address, size_t bytes)
{
	return min_t(size_t, bytes, PAGE_SIZE - offset_in_page(address));
}

size_t spile_copy_to_user(void __user *to, const char *text, size_t bytes)
{
	unsigned int page_ins = 0;
	size_t done = 0;

	if (!current->mm || !access_ok(to, bytes))
		return 0;
	while (done < bytes) {
		unsigned long address = (unsigned long)to + done;
		size_t part = page_part(address, bytes - done);

		if (!copy_to_user_nofault(to + done, text + done, part)) {
			done += part;
			page_ins = 0;
		} else if (page_ins++ == MOST_PAGE_INS ||
			   !make_resident(address, FAULT_FLAG_WRITE)) {
			break;
		}
		cond_resched();
	}
	return done;
}

size_t spile_copy_from_user(char *text, const void __user *from, size_t bytes)
{
	unsigned int page_ins = 0;
	size_t done = 0;

	if (!current->mm || !access_ok(from, bytes))
		return 0;
	while (done < bytes) {
		unsigned long address = (unsigned long)from + done;
		size_t part = page_part(address, bytes - done);

		if (!copy_from_user_nofault(text + done, from + done, part)) {
			done += part;
			page_ins = 0;
		} else if (page_ins++ == MOST_PAGE_INS || !make_resident(address, 0)) {
			break;
		}
		cond_resched();
	}
	return done;
}
