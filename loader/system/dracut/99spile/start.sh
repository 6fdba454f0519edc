#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# In the initramfs: each session starts as configured and stays; its service attaches to it when the system is up.
for conf in /etc/spile/*.conf; do
	name=${conf##*/}
	name=${name%.conf}
	[ ! -e "$conf" ] || /usr/sbin/spilerun service start-early "$name" >"/run/spile-$name.log" 2>&1 || {
		echo "spile: $name does not start in the initramfs:"
		cat "/run/spile-$name.log"
	} >/dev/kmsg
done
