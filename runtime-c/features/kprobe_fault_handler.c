// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/kprobes.h>

void probe_kprobe_fault_handler(struct kprobe *kprobe, kprobe_fault_handler_t handler);
void probe_kprobe_fault_handler(struct kprobe *kprobe, kprobe_fault_handler_t handler)
{
	kprobe->fault_handler = handler;
}
