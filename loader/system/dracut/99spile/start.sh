#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# In the initramfs: each module starts and stays; its service attaches to it when the system is up.
for module in /lib/modules/"$(uname -r)"/spile/*.ko; do
	[ ! -e "$module" ] || /usr/sbin/spilerun -L --keep "$module" || echo "spile: $module does not start" >/dev/kmsg
done
