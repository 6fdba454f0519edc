// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/preempt.h>
#include <linux/sched.h>

int probe_migrate_disable(void);
int probe_migrate_disable(void)
{
	migrate_disable();
	migrate_enable();
	return current->migration_disabled;
}
