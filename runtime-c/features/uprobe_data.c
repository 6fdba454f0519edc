// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/uprobes.h>

int probe_uprobe_data(struct uprobe_consumer *consumer, struct pt_regs *regs);
int probe_uprobe_data(struct uprobe_consumer *consumer, struct pt_regs *regs)
{
	__u64 data = 0;

	return consumer->handler(consumer, regs, &data);
}
