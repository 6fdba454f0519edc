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
killed=0 differ=0
for turn in $(seq $turns); do
	# A whole build takes seconds, one with the runtime half a second, one with the embedded unit a twentieth.
	case $((turn % 40)) in
	0) "$SPILE" --cache clear >/dev/null ; most=3000 ;;
	1 | 11 | 21 | 31) empty cache/module cache/embedded; most=500 ;;
	*[02468]) empty cache/module; most=80 ;;
	*) most=25 ;;
	esac
	delay=$(($(od -An -N2 -tu2 /dev/urandom) % most))
	# Not by the function: a shell between would be what is killed.
	"$SPILE" -r "$RELEASE" -g -p4 -m killed killed.stp >/dev/null 2>&1 &
	pid=$!
	sleep "$(printf '%d.%03d' $((delay / 1000)) $((delay % 1000)))"
	kill -9 "$pid" 2>/dev/null && killed=$((killed + 1))
	wait "$pid" 2>/dev/null || true
	rm -f killed.ko
	build >/dev/null && cmp -s killed.ko right.ko || differ=$((differ + 1))
done
echo "killed $([ $killed -ge $((turns * 3 / 4)) ] && echo at least three quarters || echo "$killed of $turns")"
echo "modules that differ: $differ"
# Programs started by a killed run end by themselves; then the next run removes their files.
sleep 3
"$SPILE" --disable-cache -r "$RELEASE" -p4 -m other -e 'probe begin { exit() }' >/dev/null
echo "damaged entries: $("$SPILE" -v -r "$RELEASE" -g -p4 -m killed killed.stp 2>&1 | grep -c damaged)"
echo "left in the temporary directory: $(find tmp -mindepth 1 | wc -l)"
find tmp -mindepth 1
