#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Debian's /etc/kernel/postinst.d: says when a new kernel has no module for an installed service of spile.
if [ -n "$1" ] && command -v spilerun >/dev/null; then
	spilerun service check "$1" || :
fi
exit 0
