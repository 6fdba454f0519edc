# Shows: the compile probes of all features take one run of the compiler for all together, however many it refuses. A compiler
# that fails without a word, or refuses the flags, gives no answer. The C of the reference module, which is compiled twice, reads few
# headers. A script whose handlers need more stack than MINSTACKSPACE is compiled once: what they need is set in the object. A script
# whose variables have to leave the stack is compiled again. A wrapper that stands for the compiler (ccache) compiles scripts too.
# stdout: ^features: 1 run$
# stdout: ^reference: at most 2 MB of C$
# stdout: ^refused by gcc: 30 in 1 run, answers 1$
# stdout: ^refused by clang: 30 in 1 run, answers 1$
# stdout: ^scripts by the wrapper: 1$
# stdout: ^mute: status 1, answers 0$
# stdout: ^refusing: status 1, answers 0$
# stdout: ^more stack: compiled 1, 1 need
# stdout: ^variables moved: compiled 2$

mkdir bin
cat >counts <<'EOF'
#!/bin/sh
embedded=
for word; do
	[ "$word" != -fsyntax-only ] || echo probed >>"$COUNT"
	[ "${word##*/}" != script.c ] || echo script >>"$COUNT"
	[ "${word##*/}" != embedded.c ] || embedded=yes
done
name=${0##*/} own=$(dirname "$0")
PATH=${PATH#"$own:"}
[ -z "$embedded" ] || "$name" "$@" -E -o - | wc -c >>"$COUNT.embedded"
exec "$name" "$@"
EOF
chmod +x counts
for compiler in /usr/bin/gcc* /usr/bin/clang*; do
	[ ! -x "$compiler" ] || ln -s ../counts "bin/${compiler##*/}"
done
export COUNT=$PWD/count

# The first build of a release compiles the runtime.
wrapped() { SPILE_CACHE_DIR=$PWD/empty PATH=$PWD/bin:$COMPILE_ONCE:$PATH "$SPILE" -r "$RELEASE" -p4 -e "$1" >/dev/null; }
wrapped 'probe begin { println(1) }' || exit
echo "features: $(grep -c probed count) run"
largest=$(sort -n count.embedded | tail -n 1)
[ "$largest" -gt 2000000 ] || largest='at most 2 MB'
echo "reference: $largest of C"
rm count
mkdir refused
echo 'int probe;' >refused/there.c
for number in $(seq 30); do echo "int refused_$number = missing_$number;" | tr 0-9 a-j >refused/probe_$(echo $number | tr 0-9 a-j).c; done
for compiler in gcc clang; do
	answers=$(PATH=$PWD/bin:$PATH sh "$ROOT/runtime-c/features.sh" "$PWD/refused" $compiler 2>/dev/null | grep -c SPILE_HAVE_THERE)
	echo "refused by $compiler: $(ls refused/probe_* | wc -l) in $(grep -c probed count) run, answers $answers"
	rm count
done
wrapped 'probe begin { println(2) }' || exit
echo "scripts by the wrapper: $(grep -c script count)"

mkdir probes
echo 'int probe;' >probes/one.c
echo '#!/bin/sh
exit 1' >mute
echo '#!/bin/sh
echo "gcc: error: unrecognized command-line option -mnew" >&2
exit 1' >refusing
chmod +x mute refusing
for compiler in mute refusing; do
	status=0
	sh "$ROOT/runtime-c/features.sh" probes "./$compiler" >answers 2>/dev/null || status=$?
	echo "$compiler: status $status, answers $(grep -c SPILE_HAVE answers)"
done

cp -r "$CACHE" cache
export SPILE_CACHE_DIR=$PWD/cache
# build DEPTH VARIABLES: a recursive function of so many variables, at most as deep.
build() {
	set_all=$(seq "$2" | sed 's/.*/a& = n * & + r(0)/' | paste -sd ';' -)
	sum=$(seq "$2" | sed 's/.*/a& * b/' | paste -sd + -)
	# Prints the commands of pass 4.
	"$SPILE" -r "$RELEASE" -p4 --vp 00030 "-DMAXNESTING=$1" -m deep -e "
function r(n) { if (n <= 0) return 1; $set_all; b = r(n - 1); return $sum }
probe begin { println(r(3)) }
probe end { println(2) }" >/dev/null 2>commands
}
compiled() { grep -c '^  [^ ]*\(gcc\|cc1\|clang\).* [^ ]*/script\.c ' commands; }
build 9 40
table=$(readelf -sW deep.ko | awk '$8 == "spile_stacks" { print $2, $3, $7 }')
set -- $table
values=$(readelf -x "$3" deep.ko | awk '/^ +0x/ { for (word = 2; word < NF; word++) if ($word ~ /^[0-9a-f]+$/) printf "%s", $word }' |
	cut -c "$((0x$1 * 2 + 1))-$((0x$1 * 2 + $2 * 2))")
echo "more stack: compiled $(compiled), $(printf '%s\n' "$values" | fold -w 8 | grep -vc 00000000) need"
build 15 100
echo "variables moved: compiled $(compiled)"
