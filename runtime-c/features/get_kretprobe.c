/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <linux/kprobes.h>

struct kretprobe *probe(struct kretprobe_instance *instance);
struct kretprobe *probe(struct kretprobe_instance *instance)
{
	return get_kretprobe(instance);
}
