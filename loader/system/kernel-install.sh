#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# kernel-install(8) plugin: says when a new kernel has no module for an installed service of spile.
# Never fails: a new kernel without a workaround is better than no new kernel.
if [ "$1" = add ] && [ -n "$2" ] && command -v spilerun >/dev/null; then
	# The first for whoever installs the kernel, the second for the log.
	if ! said=$(spilerun service check "$2" 2>&1); then
		echo "$said" >&2
		! command -v logger >/dev/null || logger -t spile -p user.warning -- "$said" || :
	fi
fi
exit 0
