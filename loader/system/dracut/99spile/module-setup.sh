#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# dracut module: modules of services with EARLY=yes, started before the root file system is mounted.

check() {
	[[ -n $(spilerun service early "$kernel") ]] || return 255
}

install() {
	local path
	inst_binary /usr/sbin/spilerun
	while read -r path; do
		inst_simple "$path"
	done < <(spilerun service early "$kernel")
	inst_hook pre-mount 10 "$moddir/start.sh"
}
