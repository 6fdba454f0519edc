#!/bin/sh -e
# SPDX-License-Identifier: GPL-2.0-or-later
# build.sh SCRIPT.c PROGRAM OPTIONS...: a script's C, as `spile -p3` prints it, with the runtime and threads.c in
# user space. OPTIONS are the compiler's, as -fsanitize=thread; MAIN (threads.c) is the file with main(). $CC: cc.
# With - in place of SCRIPT.c only MAIN, which has of the runtime what it wants.
script=$1 program=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
headers=$(mktemp -d)
trap 'rm -rf "$headers"' EXIT
# The headers of the kernel that the runtime names are empty, but for those of the C library: kernel.h is in place of them.
grep -hoE '^#include <[a-z]+/[^>]+>' "$here"/../../*.[ch] | sed 's/.*<\(.*\)>/\1/' | grep -v "linux/\(types\|errno\|limits\).h" | sort -u | while read -r name; do
	mkdir -p "$headers/$(dirname "$name")"
	: >"$headers/$name"
done
# Arrays and aggregates, whichever files they are.
sed -n '/^#include "map_init.c"/,/^$/s|"\(.*\)"|"'"$here"'/../../\1"|p' "$here/../../runtime.c" >"$headers/maps.h"
compile() {
	"${CC:-cc}" -std=gnu11 -g -O2 -Wall -Wno-unused-function -Wno-unused-value -Wno-address-of-packed-member -pthread \
		-I "$headers" -iquote "$here" -iquote "$here/../.." "$@"
}
kernel() {
	compile -include "$here/kernel.h" "$@"
}
if [ "$script" = - ]; then
	kernel "$@" -o "$program" "$here/$MAIN"
	exit
fi
objects="$program.script.o $program.runtime.o $program.main.o"
compile "$@" -Wno-unused -c -o "$program.script.o" "$script"
kernel "$@" -c -o "$program.runtime.o" "$here/runtime.c"
# Who counts the calls for a sanitizer has them itself.
[ "$MAIN" != count.c ] || set --
kernel "$@" -c -o "$program.main.o" "$here/${MAIN:-threads.c}"
compile "$@" -o "$program" $objects
rm $objects
