// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/proc_fs.h>

void *probe_pde_data_lower(const struct inode *inode);
void *probe_pde_data_lower(const struct inode *inode)
{
	return pde_data(inode);
}
