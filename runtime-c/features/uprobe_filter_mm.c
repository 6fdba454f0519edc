// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/uprobes.h>

bool probe_uprobe_filter_mm(struct uprobe_consumer *consumer, struct mm_struct *mm);
bool probe_uprobe_filter_mm(struct uprobe_consumer *consumer, struct mm_struct *mm)
{
	return consumer->filter(consumer, mm);
}
