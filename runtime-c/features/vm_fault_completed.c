// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/mm_types.h>

unsigned int probe_vm_fault_completed(void);
unsigned int probe_vm_fault_completed(void)
{
	return VM_FAULT_COMPLETED;
}
