// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/uprobes.h>

struct uprobe *probe_uprobe_handle(struct inode *inode, struct uprobe_consumer *consumer);
struct uprobe *probe_uprobe_handle(struct inode *inode, struct uprobe_consumer *consumer)
{
	struct uprobe *uprobe = uprobe_register(inode, 0, 0, consumer);

	uprobe_unregister_nosync(uprobe, consumer);
	return uprobe;
}
