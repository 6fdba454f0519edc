#!/bin/sh
# The C compiler for tests that build the runtime in caches of their own: compiling its units is most of the CPU
# time of such a build, and the result is the same each time (gcc gets -ffile-prefix-map). They are compiled once, and copied where
# the compiler, its options and the preprocessed text are the same, also in later runs of the tests; warnings are repeated.
# Everything else is passed on: feature tests, links, the script's own units.
#
# Beside this file, which is found in PATH under the compiler's name, is what is true in one run of the tests; `objects` has what is
# kept for others. The compiler follows in PATH.

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
[ -n "$object" ] || exec "$real" "$@"

# Where paths do not get into the object, the directory is left out of what is compared.
same=
case $all in
*-ffile-prefix-map="$top"=*) same="s|$top|@|g" ;;
esac

# In one run of the tests, the same command with the same sources and generated header gives the same text.
known= key=
if [ -n "$list" ] && [ -n "$same" ]; then
	known=$kept/$({
		pwd
		printf '%s\n' "$@" | sed "$same"
		find "$top/runtime-c" -type f \( -name '*.[ch]' -o -name '*.inc' \) | LC_ALL=C sort | xargs cat
	} | sha256sum | cut -c 1-32)
	[ ! -e "$known" ] || { read -r key <"$known"; sed "1d; s|@|$top|g" "$known" >"$list"; }
fi
if [ -z "$key" ]; then
	said=$("$real" "$@" -E 2>&1) || exec "$real" "$@"
	key=$({
		stat -L -c '%s %Y' "$real" "$(command -v as)"
		pwd
		# Macros are in the text, as far as it uses them: KBUILD_MODNAME, for instance, is another in each module.
		{ printf '%s\n' "$@" | grep -v '^-D'; echo "$said"; cat "$object"; } | sed "$same"
	} | sha256sum | cut -c 1-32)
	if [ -n "$known" ]; then
		{ echo "$key"; sed "s|$top|@|g" "$list"; } >"$known.$$" && mv "$known.$$" "$known"
	fi
fi
entry=$kept/objects/$key
(
	# Tests that begin at the same time wait for the first.
	flock 9
	[ ! -e "$entry.o" ] || exit 0
	"$real" "$@" 2>"$entry.said" || { status=$?; cat "$entry.said" >&2; exit $status; }
	sed -i "s|$top|@top@|g" "$entry.said"
	cp "$object" "$entry.new" && mv "$entry.new" "$entry.o"
) 9>"$entry.lock" || exit
# When they were last used.
touch "$entry.o" "$entry.said"
[ ! -s "$entry.said" ] || sed "s|@top@|$top|g" "$entry.said" >&2
cp "$entry.o" "$object"
