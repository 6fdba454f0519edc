// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Address resolution. Neither kallsyms nor /proc is needed: the kernel's slide
 * shows in any exported symbol, and kprobes resolve names in modules.
 */
#include <linux/percpu.h>
#include <linux/smp.h>
#include <linux/string.h>

#include "attach.h"

unsigned long spile_slide;

unsigned long spile_attach_slide(void)
{
	return (unsigned long)register_kprobe - spile_script.anchor_address;
}

unsigned long spile_per_cpu_offset(void)
{
	return per_cpu_offset(raw_smp_processor_id());
}

void spile_attach_place(struct kprobe *kprobe, const struct spile_site *site)
{
	memset(kprobe, 0, sizeof(*kprobe));	/* what a registration that is over has left */
	if (site->symbol) {
		kprobe->symbol_name = site->symbol;
		kprobe->offset = site->probe->address;
	} else {
		kprobe->addr = (kprobe_opcode_t *)(site->probe->address +
						   (site->probe->target < 0 ? 0 : spile_attach_slide()));
	}
}
