// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/workqueue.h>

bool probe_system_dfl_wq(struct work_struct *work);
bool probe_system_dfl_wq(struct work_struct *work)
{
	return queue_work(system_dfl_wq, work);
}
