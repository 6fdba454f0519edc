#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# usage: features.sh DIRECTORY COMPILER FLAGS...
#
# Compile probes: prints a SPILE_HAVE_ macro for each file of DIRECTORY that compiles against the kernel whose
# flags are given. features.h says what each is about.
#
# Reading the kernel's headers takes most of the time of a probe, so one run of the compiler has all of them. Its
# errors name the files that this kernel refuses. A header that is missing ends the run: it goes on without that
# file. Errors that name no file of DIRECTORY (in a header that one includes) lead to a run for each.
LC_ALL=C
export LC_ALL
directory=$1
shift

# By itself clang stops after twenty errors.
limit=
for word; do
	case $word in -*) break ;; esac
	case ${word##*/} in clang* | *-clang*) limit=-ferror-limit=0 ;; esac
done

check() {
	"$@" $limit -fsyntax-only -x c -
}

# compile COMPILER FLAGS...: all files of $left in one unit; prints what the compiler says.
compile() {
	for name in $left; do
		echo "#include \"$directory/$name.c\""
	done | check "$@" 2>&1
}

left=$(cd "$directory" && ls -- *.c | sed 's/\.c$//')
while
	said=$(compile "$@")
	status=$?
	refused=$(echo "$said" | grep -E '(^|[: ])error: ')
	ended=$(echo "$refused" | sed -n 's,^[^ ]*/\([a-z_0-9]*\)\.c:[0-9:]* fatal error: .*,\1,p' | head -n 1)
	case " $(echo $left) " in *" ${ended:-/} "*) ;; *) false ;; esac
do
	left=$(for name in $left; do [ "$name" = "$ended" ] || echo "$name"; done)
done
elsewhere=$(echo "$refused" | grep . | grep -v "/${directory##*/}/[a-z_0-9]*\.c:[0-9]*:[0-9]*: error: ")
# A compiler that refuses the flags, or that fails with everything, would have no feature: that is no answer.
if [ -n "$elsewhere" ] || { [ "$status" != 0 ] && [ -z "$refused" ]; }; then
	elsewhere=yes
	check "$@" </dev/null || exit 1
fi
for name in $left; do
	if [ -n "$elsewhere" ]; then
		check "$@" <"$directory/$name.c" 2>/dev/null || continue
	else
		case $refused in *"$directory/$name.c:"*) continue ;; esac
	fi
	echo "#define SPILE_HAVE_$(echo "$name" | tr a-z A-Z) 1"
done
