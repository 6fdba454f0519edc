// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/kprobes.h>

struct kretprobe *probe_get_kretprobe(struct kretprobe_instance *instance);
struct kretprobe *probe_get_kretprobe(struct kretprobe_instance *instance)
{
	return get_kretprobe(instance);
}
