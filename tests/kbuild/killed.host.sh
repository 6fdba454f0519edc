# Shows: a build killed at any moment leaves nothing behind, and the next one produces the same module. Killed 80 times, or 200
# with SPILE_TEST_ALL: the moments are random, so each run tries others.
# limit: 400
# stdout: ^killed at least three quarters$
# stdout: ^modules that differ: 0$
# stdout: ^damaged entries: 0$
# stdout: ^left in the temporary directory: 0$

mkdir tmp cache
export TMPDIR=$PWD/tmp SPILE_CACHE_DIR=$PWD/cache PATH=$COMPILE_ONCE:$PATH
turns=80
[ -z "$SPILE_TEST_ALL" ] || turns=200
cat >killed.stp <<'EOF'
global n
function plus:long (x:long) %{ STAP_RETURN(STAP_ARG_x + 1); %}
probe timer.s(1) { n = plus(n) }
probe end { println(n) }
EOF
build() { "$SPILE" -r "$RELEASE" -g -p4 -m killed killed.stp; }
build >/dev/null || exit
cp killed.ko right.ko
# Programs that the killed run started may still write there.
empty() {
	for tenth in $(seq 100); do
		! rm -rf "$@" 2>/dev/null || return 0
		sleep 0.1
	done
	rm -rf "$@"
}
now() { echo $(($(date +%s%N) / 1000)); }
# How much of the cache each kind of build begins without.
without() {
	case $1 in
	all) "$SPILE" --cache clear >/dev/null ;;
	embedded) empty cache/module cache/embedded ;;
	module) empty cache/module ;;
	none) ;;
	esac
}
# The moments of each kind are within the time that it takes here and now, at first the least of some builds, in microseconds.
all=60000000 embedded=60000000 module=60000000 none=60000000
for kind in all embedded embedded module module module none none none none none; do
	without $kind
	began=$(now)
	build >/dev/null || exit
	took=$(($(now) - began))
	eval "[ \$$kind -lt $took ] || $kind=$took"
done
killed=0 differ=0
for turn in $(seq $turns); do
	case $((turn % 40)) in
	0) kind=all ;;
	1 | 11 | 21 | 31) kind=embedded ;;
	*[02468]) kind=module ;;
	*) kind=none ;;
	esac
	without $kind
	eval "most=\$$kind"
	delay=$(($(od -An -N4 -tu4 /dev/urandom) % most))
	# Not by the function: a shell between would be what is killed.
	"$SPILE" -r "$RELEASE" -g -p4 -m killed killed.stp >/dev/null 2>&1 &
	pid=$!
	sleep "$(printf '%d.%06d' $((delay / 1000000)) $((delay % 1000000)))"
	# The machine may become faster than it was: one that has ended before makes the next ones' moments earlier.
	if kill -9 "$pid" 2>/dev/null; then
		killed=$((killed + 1))
		eval "$kind=$((most * 21 / 20))"
	else
		eval "$kind=$((most * 2 / 3))"
	fi
	wait "$pid" 2>/dev/null || true
	rm -f killed.ko
	build >/dev/null && cmp -s killed.ko right.ko || differ=$((differ + 1))
done
echo "killed $([ $killed -ge $((turns * 3 / 4)) ] && echo at least three quarters || echo "$killed of $turns")"
echo "modules that differ: $differ"
# Programs started by a killed run end by themselves; then the next run that has files of its own
# removes theirs.
sleep 3
"$SPILE" -r "$RELEASE" -p4 -m other -e 'probe begin { exit() }' >/dev/null
echo "damaged entries: $("$SPILE" -v -r "$RELEASE" -g -p4 -m killed killed.stp 2>&1 | grep -c damaged)"
echo "left in the temporary directory: $(find tmp -mindepth 1 | wc -l)"
find tmp -mindepth 1
