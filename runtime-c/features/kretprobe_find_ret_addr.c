// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/kprobes.h>

unsigned long probe_kretprobe_find_ret_addr(struct task_struct *task, void *frame);
unsigned long probe_kretprobe_find_ret_addr(struct task_struct *task, void *frame)
{
	struct llist_node *at = NULL;

	return kretprobe_find_ret_addr(task, frame, &at);
}
