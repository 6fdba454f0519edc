#!/bin/sh -e
# SPDX-License-Identifier: GPL-2.0-or-later
# build.sh SCRIPT.c PROGRAM OPTIONS...: a script's C, as `spile -p3` prints it, with the runtime and threads.c in
# user space. OPTIONS are the compiler's, as -fsanitize=thread; MAIN (threads.c) is the file with main(). $CC: cc.
# With - in place of SCRIPT.c only MAIN, which includes the parts of the runtime that it needs. With + PROGRAM.runtime.o and PROGRAM.main.o alone,
# which are the same for all scripts: SHARED=PROGRAM takes them, instead of compiling the runtime again.
script=$1 program=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
headers=$(mktemp -d)
trap 'rm -rf "$headers"' EXIT
# The headers of the kernel that the runtime names are empty, except for those of the C library: kernel.h is in place of them.
names=$(grep -hoE '^#include <[a-z]+/[^>]+>' "$here"/../../*.[ch] | sed 's/.*<\(.*\)>/\1/' | grep -v "linux/\(types\|errno\|limits\).h" | sort -u)
(cd "$headers" && echo "$names" | sed 's|/[^/]*$||' | sort -u | xargs mkdir -p && echo "$names" | xargs touch)
# Arrays and aggregates, whichever files they are.
arrays() { sed -n '/^#include "'"$1"'"/,/^$/s|"\(.*\)"|"'"$here"'/../../\1"|p' "$here/../../$2"; }
{ arrays map_init.c unit_session.c; arrays kept_text.c unit_hits.c; } >"$headers/maps.h"
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
# rest OBJECTS OPTIONS...: what is not the script's, as OBJECTS.runtime.o and OBJECTS.main.o.
rest() {
	objects=$1
	shift
	kernel "$@" -c -o "$objects.runtime.o" "$here/runtime.c"
	# Who counts the calls for a sanitizer has them itself.
	[ "$MAIN" != count.c ] || set --
	kernel "$@" -c -o "$objects.main.o" "$here/${MAIN:-threads.c}"
}
if [ "$script" = + ]; then
	rest "$program" "$@"
	exit
fi
made="$program.script.o"
# Random scripts say things that a compiler wonders about.
[ "$MAIN" != rounds.c ] || quiet=-w
compile "$@" -Wno-unused $quiet -c -o "$program.script.o" "$script"
if [ -z "$SHARED" ]; then
	rest "$program" "$@"
	made="$made $program.runtime.o $program.main.o"
fi
# The sanitizer's library, unless it is counted who calls it.
[ "$MAIN" != count.c ] || set --
compile "$@" -o "$program" "$program.script.o" "${SHARED:-$program}.runtime.o" "${SHARED:-$program}.main.o"
rm $made
