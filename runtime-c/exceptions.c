// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Exceptions that pass through functions whose returns are probed. In place of the return address
 * of such a call is that of the kernel's trampoline, of which no table for unwinding knows. Who
 * looks for a handler of the exception from caller to caller (_Unwind_RaiseException() of libgcc)
 * would end there, and the program with std::terminate(). So the addresses are put back when such
 * a search begins. When the exception has been caught, those of the calls that are still under way
 * are replaced again, so that their returns are seen.
 *
 * The kernel drops what it knows of calls that have been left when a call below them begins or
 * returns (cleanup_return_instances() and handle_trampoline() in kernel/events/uprobes.c).
 */
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/uprobes.h>

#include "exceptions.h"
#include "features.h"
#include "held_maps.h"
#include "original_return.h"
#include "page_in.h"
#include "script.h"
#include "session.h"
#include "uprobe.h"

enum { MOST_AREAS = 1 << 17 };	/* of a process that are looked at: twice the usual limit */

struct unwinder {
	struct uprobe_consumer consumer;
	struct inode *inode;
	struct uprobe *handle;
	bool armed;
	bool failed;
};

static struct unwinder *unwinders;	/* as spile_script.unwinders; under spile_session.lock */

/* Where a process had its trampoline: most have it at one place. */
static unsigned long last_trampoline;

/* xol_add_vma() in kernel/events/uprobes.c: the trampoline is at the beginning of that page. */
static bool has_trampoline(const struct vm_area_struct *area)
{
	const unsigned long rights = VM_READ | VM_WRITE | VM_EXEC;

	return !area->vm_file && area->vm_end - area->vm_start == PAGE_SIZE &&
	       (area->vm_flags & (rights | VM_DONTCOPY | VM_IO)) ==
		       (VM_EXEC | VM_DONTCOPY | VM_IO);
}

/* Of the current process; 0: it has none. */
static unsigned long find_trampoline(void)
{
	struct mm_struct *mm = current->mm;
	unsigned long at = READ_ONCE(last_trampoline) ?: TASK_SIZE_MAX - PAGE_SIZE;
	struct vm_area_struct *area;
	unsigned int i;

	if (!spile_lock_maps(mm, false))
		return 0;
	area = find_vma(mm, at);
	if (!area || area->vm_start != at || !has_trampoline(area)) {
		area = find_vma(mm, 0);
		for (i = 0; area && !has_trampoline(area) && i < MOST_AREAS; i++)
			area = find_vma(mm, area->vm_end);
	}
	at = area && has_trampoline(area) ? area->vm_start : 0;
	mmap_read_unlock(mm);
	if (at)
		WRITE_ONCE(last_trampoline, at);
	return at;
}

/* Of the program's stack, in words of its kind; it may have been swapped out. */
static unsigned long return_address_at(unsigned long at, unsigned int bytes)
{
	const void __user *place = (const void __user *)at;
	unsigned long word = 0;

	if (copy_from_user_nofault(&word, place, bytes) &&
	    (!spile_page_in_soon(at, 0, false) || copy_from_user_nofault(&word, place, bytes)))
		return 0;
	return word;
}

static bool set_return_address(unsigned long at, unsigned long word, unsigned int bytes)
{
	void __user *place = (void __user *)at;

	return !copy_to_user_nofault(place, &word, bytes) ||
	       (spile_page_in_soon(at, FAULT_FLAG_WRITE, false) &&
		!copy_to_user_nofault(place, &word, bytes));
}

/*
 * Changes the return addresses at places above `above` from those of callers to the trampoline's, or
 * back. Only this task changes its list.
 */
static void exchange(unsigned long above, bool to_trampoline, unsigned int bytes)
{
	const struct return_instance *call;
	unsigned long trampoline = 0;

	for (call = current->utask->return_instances; call; call = call->next) {
		unsigned long from, to, word;

		if (call->stack <= above)
			continue;
		word = return_address_at(call->stack, bytes);
		/* Another value is none of the two: the call has been left. */
		if (!word || (word == call->orig_ret_vaddr) != to_trampoline)
			continue;
		trampoline = trampoline ?: find_trampoline();
		if (!trampoline)
			return;
		from = to_trampoline ? call->orig_ret_vaddr : trampoline;
		to = to_trampoline ? trampoline : call->orig_ret_vaddr;
		/* What cannot be written is withheld by the program's user. */
		if (word == from && !set_return_address(call->stack, to, bytes))
			return;
	}
}

static unsigned int word_bytes(struct pt_regs *regs)
{
	return user_64bit_mode(regs) ? 8 : 4;
}

static int handle_search(struct uprobe_consumer *self, struct pt_regs *regs SPILE_UPROBE_DATA)
{
	if (spile_has_returns())
		exchange(0, false, word_bytes(regs));
	return 0;
}

/* In the frame that has caught it: calls whose return addresses are above are under way. */
static int handle_catch(struct uprobe_consumer *self, struct pt_regs *regs SPILE_UPROBE_DATA)
{
	if (spile_has_returns())
		exchange(kernel_stack_pointer(regs), true, word_bytes(regs));
	return 0;
}

/* Processes in which a return is probed. */
static SPILE_UPROBE_FILTER(has_probed_returns)
{
	const struct spile_probe *last = NULL;
	unsigned int i;

	for (i = 0; i < spile_script.probe_count; i++) {
		const struct spile_probe *probe = &spile_script.probes[i];

		if (probe->kind != SPILE_PROBE_URETPROBE ||
		    (last && probe->uprobe.pid == last->uprobe.pid))
			continue;
		if (spile_follows_mm(probe->uprobe.pid, mm))
			return true;
		last = probe;
	}
	return false;
}

static int arm_unwinder(struct unwinder *unwinder, const struct spile_unwinder *at)
{
	struct inode *inode = spile_program_inode(at->program);
	int error;

	/* Other errors have been reported, where processes can use the file. */
	if (IS_ERR(inode))
		return PTR_ERR(inode) == -ENOMEM ? -ENOMEM : 0;
	if (spile_maps_are_held(inode))
		return -EBUSY;
	memset(unwinder, 0, sizeof(*unwinder));
	unwinder->consumer.handler = at->catches ? handle_catch : handle_search;
	unwinder->consumer.filter = has_probed_returns;
	unwinder->inode = inode;
	error = spile_uprobe_add(inode, at->offset, 0, &unwinder->consumer, &unwinder->handle);
	unwinder->armed = !error;
	return error;
}

void spile_exceptions_arm(void)
{
	unsigned int i;

	for (i = 0; i < spile_script.unwinder_count; i++) {
		const struct spile_unwinder *at = &spile_script.unwinders[i];
		int error;

		if (unwinders[i].armed || unwinders[i].failed)
			continue;
		error = arm_unwinder(&unwinders[i], at);
		/* It is tried again when the session starts, and reported then. */
		if (!error || spile_session_state == SPILE_STATE_READY)
			continue;
		unwinders[i].failed = true;
		if (!at->catches)
			spile_session_emit(
				SPILE_RECORD_WARN,
				"%s+0x%llx cannot be probed (rc %d): an exception that passes through a function whose return is probed ends the program",
				spile_script.programs[at->program].path, at->offset, error);
	}
}

static void remove_unwinder(struct unwinder *unwinder, const struct spile_unwinder *at)
{
	spile_uprobe_remove(unwinder->inode, at->offset, &unwinder->consumer, unwinder->handle);
	unwinder->armed = false;
}

bool spile_exceptions_detach(void)
{
	unsigned int i;

	for (i = 0; i < spile_script.unwinder_count; i++) {
		const struct spile_unwinder *at = &spile_script.unwinders[i];

		if (!unwinders[i].armed)
			continue;
		if (spile_maps_delay(unwinders[i].inode, spile_script.programs[at->program].path))
			return false;
		remove_unwinder(&unwinders[i], at);
	}
	return true;
}

int spile_exceptions_init(void)
{
	unwinders = kvcalloc(spile_script.unwinder_count, sizeof(*unwinders), GFP_KERNEL);
	if (!unwinders)
		return -ENOMEM;
	spile_session_charge(spile_script.unwinder_count * sizeof(*unwinders));
	return 0;
}

void spile_exceptions_exit(void)
{
	bool removed = false;
	unsigned int i;

	/* They are left where no return could be armed. */
	for (i = 0; unwinders && i < spile_script.unwinder_count; i++) {
		if (!unwinders[i].armed)
			continue;
		remove_unwinder(&unwinders[i], &spile_script.unwinders[i]);
		removed = true;
	}
	if (removed)
		spile_uprobe_wait();
	kvfree(unwinders);
	unwinders = NULL;
}
