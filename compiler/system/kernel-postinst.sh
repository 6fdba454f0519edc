#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Debian's /etc/kernel/postinst.d and header_postinst.d: prepares root's scripts for a new kernel, which the first of them would
# otherwise wait for. Of the kernel's two packages the one that comes last finds all: without headers there is nothing to do yet.
if [ -n "$1" ] && [ -e "/lib/modules/$1/build/Makefile" ] && command -v spile >/dev/null; then
	# Root's own places: a package manager's environment may have no home, or that of the user who called sudo.
	# Nothing is downloaded while the package manager waits.
	HOME=~root env -u SYSTEMTAP_DIR -u XDG_CACHE_HOME -u DEBUGINFOD_URLS nice spile --prepare -r "$1" || :
fi
exit 0
