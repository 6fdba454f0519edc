#!/bin/sh
# The C compiler for tests that build the runtime in caches of their own: compiling its units is most of the CPU
# time of such a build, and in one run of the tests the result is the same each time (gcc gets -ffile-prefix-map). They are
# compiled once, and copied where the command, the sources and the generated header are the same; warnings are repeated. Everything
# else is passed on: feature tests, links, the script's own units.
#
# Beside this file, which is found in PATH under the compiler's name, are the kept objects; the compiler follows in PATH.

kept=${0%/*}
name=${0##*/}

# The kernel's Makefile asks for each of some fifty flags whether the compiler takes it, each time anew: those that it took without a
# word are listed.
all=$* question=
case $all in
# Not one line, as those of the list.
*"
"*) ;;
*' -c -x c /dev/null -o '*)
	question="$PWD ${all% -o *}" object=${all##* -o }
	if grep -qsxFe "$question" "$kept/$name.taken"; then
		: >"$object"
		exit
	fi
	;;
esac

real=
IFS=:
for directory in $PATH; do
	[ "$directory" = "$kept" ] || [ ! -x "$directory/$name" ] || { real=$directory/$name; break; }
done
unset IFS
[ -n "$real" ] || { echo "$name: there is no other in PATH" >&2; exit 127; }
if [ -n "$question" ]; then
	said=$("$real" "$@" 2>&1) || { status=$?; [ -z "$said" ] || echo "$said" >&2; exit $status; }
	if [ -n "$said" ]; then echo "$said" >&2; else echo "$question" >>"$kept/$name.taken"; fi
	exit 0
fi

source= object= list= compiles= before=
for word; do
	case $word in
	-c) compiles=yes ;;
	-Wp,-MMD,*) list=${word#-Wp,-MMD,} ;;
	*/runtime-c/unit_*.c | */runtime-c/runtime.c) source=$word ;;
	esac
	[ "$before" != -o ] || object=$word
	before=$word
done
top=${source%/runtime-c/*.c}
case $compiles$top in
# sed and make would interpret other characters.
yes/*[!A-Za-z0-9/_.-]* | yes | "" | /*) exec "$real" "$@" ;;
esac
[ -n "$object" ] && [ -n "$list" ] || exec "$real" "$@"

key=$({
	pwd
	printf '%s\n' "$@" | sed "s|$top|@|g"
	find "$top/runtime-c" -type f \( -name '*.[ch]' -o -name '*.inc' \) | LC_ALL=C sort | xargs cat
} | sha256sum | cut -c 1-32)
entry=$kept/$key
(
	# Tests that begin at the same time wait for the first.
	flock 9
	[ ! -e "$entry.o" ] || exit 0
	"$real" "$@" 2>"$entry.said" || { status=$?; cat "$entry.said" >&2; exit $status; }
	sed -i "s|$top|@top@|g" "$entry.said"
	sed "s|$top|@|g" "$list" >"$entry.d"
	cp "$object" "$entry.new" && mv "$entry.new" "$entry.o"
) 9>"$entry.lock" || exit
[ ! -s "$entry.said" ] || sed "s|@top@|$top|g" "$entry.said" >&2
sed "s|@|$top|g" "$entry.d" >"$list" && cp "$entry.o" "$object"
