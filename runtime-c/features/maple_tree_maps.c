// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/mm_types.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
/* As in hex_header.c. */
#if __has_include(<linux/maple_tree.h>)
#include <linux/maple_tree.h>
#else
#error there is no linux/maple_tree.h
#endif

void *probe_maple_tree_maps(unsigned long address);
void *probe_maple_tree_maps(unsigned long address)
{
	MA_STATE(place, &current->mm->mm_mt, address, address);

	return mt_in_rcu(&current->mm->mm_mt) ? mas_walk(&place) : mas_find(&place, address);
}
