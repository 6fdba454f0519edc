// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/mm.h>
#include <linux/stddef.h>
#include <asm/cpu_entry_area.h>
#include <asm/pgtable.h>

unsigned long probe_exception_stacks[] = {
	offsetof(struct cea_exception_stacks, DF_stack),
	offsetof(struct cea_exception_stacks, NMI_stack),
	offsetof(struct cea_exception_stacks, DB_stack),
	offsetof(struct cea_exception_stacks, MCE_stack),
	offsetof(struct cea_exception_stacks, VC_stack),
	offsetof(struct cea_exception_stacks, VC2_stack),
	offsetof(struct cpu_entry_area, estacks),
	CPU_ENTRY_AREA_SIZE,
	P4D_SHIFT,
};
