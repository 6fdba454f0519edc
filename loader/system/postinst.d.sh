#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Debian's /etc/kernel/postinst.d: says when a new kernel has no module for an installed service of spile.
if [ -n "$1" ] && command -v spilerun >/dev/null; then
	# The first for whoever installs the kernel, the second for the log.
	if ! said=$(spilerun service check "$1" 2>&1); then
		echo "$said" >&2
		! command -v logger >/dev/null || logger -t spile -p user.warning -- "$said" || :
	fi
fi
exit 0
