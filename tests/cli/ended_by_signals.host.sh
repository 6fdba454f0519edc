# Shows: a signal that ends spile while it compiles, prepares a kernel, fetches debug information or has headers compiled leaves no directory, no
# unfinished entry or file and no program; also one that comes twice, or to a program that is started with the signals blocked. SIGKILL leaves no program
# either. One that is ignored stays so. SIGBUS, as of a file that is made shorter, is an error. spile report passes them on to the session. What takes long at the end is given up at a second signal. A cache lock of a process that is stopped is not waited for.
# limit: 60
# stdout: ^compiling: 130 143 129 143 1$
# stdout: ^by Kbuild: 143, --prepare: 130, headers: 143, debuginfod: 143, blocked: 143$
# stdout: ^left: 0$
# stdout: ^report: 1, of a group: 1, killed: 137, left: 0$
# stdout: ^ignored: goes on, then 143$
# stdout: ^killed: 137, its programs end$
# stdout: ^the next run removes its directory: 0$
# stdout: ^a second signal: 130$
# stdout: ^waiting for process [0-9]+, which makes the runtime for [^ ]+ and is stopped; for 10 seconds at most$
# stdout: ^the runtime for [^ ]+: not waiting any longer$
# stdout: ^beside a stopped one: 1$

mkdir bin tmp cache fake
export TMPDIR=$PWD/tmp SPILE_CACHE_DIR=$PWD/cache STARTED=$PWD/started DEBUGINFOD_URLS=
# What runs for ever, with a process of its own, as a compiler that make has started.
cat >bin/make <<'END'
#!/bin/sh
sh -c 'sleep 1000 & echo $! >>"$STARTED"; wait' &
echo $! >>"$STARTED"
echo $$ >>"$STARTED"
: >"$TMPDIR/unfinished"
printf 'HTTP/1.1 200 OK\r\n\r\nbegin'
wait
END
cp bin/make fake/gcc
cp bin/make fake/curl
chmod 755 bin/make fake/gcc fake/curl
cat >timer.stp <<'END'
probe timer.s(1) { println("x") }
END
cat >header.stp <<'END'
probe timer.s(1) { println(@cast(1, "timeval", "<sys/time.h>")->tv_sec) }
END
echo 'int work(int i) { return i + 1; } int main(void) { return work(1); }' >program.c
gcc -O0 -s -Wl,--build-id=sha1 -o program program.c
fail() { echo "$*"; exit 1; }
# begin ARGUMENTS: in the background, with signals as $how says; $spile is its process, and its programs run.
begin() {
	: >started
	env $how "$SPILE" "$@" >out 2>&1 &
	spile=$!
	for tenth in $(seq 600); do
		[ "$(wc -l <started)" -lt 3 ] || return 0
		sleep 0.1
	done
	cat out
	fail "its programs do not run: $*"
}
# ended TENTHS: sets $status; its programs are gone then, or as many tenths of a second later.
ended() {
	status=0
	wait "$spile" || status=$?
	for tenth in $(seq $1); do
		left=
		for process in $(cat started); do
			! grep -qs '^State:.[^ZX]' /proc/$process/status || left="$left $process"
		done
		[ -n "$left" ] || return 0
		sleep 0.1
	done
	fail "still there: $left"
}
found() { find tmp cache \( -name 'spile-*' -o -name '.new-*' -o -name '*.lock' \); find . -maxdepth 1 -name '.spile*'; }
how='--default-signal=INT,TERM,HUP'
real=$PATH
PATH=$PWD/bin:$PATH
statuses=
for signal in INT TERM HUP TWICE BUS; do
	begin -r "$RELEASE" -p4 -m timer timer.stp
	case $signal in
	TWICE) kill -s TERM $spile; kill -s TERM $spile 2>/dev/null || true ;;
	*) kill -s $signal $spile ;;
	esac
	ended 1
	statuses="$statuses $status"
	found
done
echo "compiling:$statuses"
begin --kbuild -r "$RELEASE" -p4 -m timer timer.stp
kill -s TERM $spile
ended 1
kbuild=$status
begin --prepare "$RELEASE"
kill -s INT $spile
ended 1
prepare=$status
PATH=$PWD/fake:$real
begin -r "$RELEASE" -p2 header.stp
kill -s TERM $spile
ended 1
header=$status
how="$how DEBUGINFOD_URLS=http://127.0.0.1:9"
begin -r "$RELEASE" -p2 -e 'probe process("./program").function("work") { println($i) }'
find cache -name '.new-*' | grep -q . || fail 'nothing is being fetched'
kill -s TERM $spile
ended 1
fetched=$status
PATH=$PWD/bin:$real
how='--default-signal=INT,TERM,HUP --block-signal=INT,TERM,HUP'
begin -r "$RELEASE" -p4 -m timer timer.stp
kill -s TERM $spile
ended 1
echo "by Kbuild: $kbuild, --prepare: $prepare, headers: $header, debuginfod: $fetched, blocked: $status"
found
echo "left: $(found | wc -l)"

how='--default-signal=INT,TERM,HUP'
begin report -r "$RELEASE" timer.stp
kill -s TERM $spile
ended 1
report=$status
grep -q '^spile: report: the script was not run' out
found
# As timeout(1) does.
how="$how setsid"
begin report -r "$RELEASE" timer.stp
kill -s TERM $spile
kill -s TERM -- -$spile
ended 1
group=$status
found
how='--default-signal=INT,TERM,HUP'
begin report -r "$RELEASE" timer.stp
kill -s KILL $spile
killed=0
wait $spile || killed=$?
# The session goes on with its own directory until it is ended.
session=$(for process in /proc/[0-9]*; do ! tr '\0' ' ' <$process/cmdline 2>/dev/null | grep -q "$PWD/tmp/.*recording" || echo ${process#/proc/}; done)
kill -s TERM $session
sleep 1
begin -r "$RELEASE" -p4 -m timer timer.stp
kill -s TERM $spile
ended 1
found
echo "report: $report, of a group: $group, killed: $killed, left: $(found | wc -l)"

how='--ignore-signal=HUP --default-signal=TERM'
begin -r "$RELEASE" -p4 -m timer timer.stp
kill -s HUP $spile
sleep 0.5
kill -0 $spile && goes='goes on'
kill -s TERM $spile
ended 1
echo "ignored: $goes, then $status"

how='--default-signal=INT,TERM,HUP'
begin -r "$RELEASE" -p4 -m timer timer.stp
kill -s KILL $spile
ended 100
echo "killed: $status, its programs end"
begin -r "$RELEASE" -p4 -m timer timer.stp
kill -s TERM $spile
ended 1
echo "the next run removes its directory: $(found | wc -l)"

# Each of them is waited for, for a second: somebody has locked it.
mkdir tmp/spile-run-1 tmp/spile-run-2 tmp/spile-run-3 tmp/spile-run-4 tmp/spile-run-5 tmp/spile-run-6
for number in 1 2 3 4 5 6; do
	flock tmp/spile-run-$number sleep 30 &
	held="$held $!"
done
sleep 0.2
env --block-signal=INT,TERM,HUP bash -c 'exec -a spile-ended "$0" "$@"' "$SPILE" 15 0 "$PWD"/tmp/spile-run-* &
spile=$!
sleep 1
kill -s INT $spile
status=0
wait $spile || status=$?
echo "a second signal: $status"
kill $held 2>/dev/null || true
rm -rf tmp/spile-run-*

begin -r "$RELEASE" -p4 -m timer timer.stp
kill -s STOP $spile
stopped=$spile
cat >bin/make <<'END'
#!/bin/sh
exit 1
END
status=0
"$SPILE" -r "$RELEASE" -p4 -m timer timer.stp >out 2>&1 || status=$?
grep -E 'waiting for|not waiting' out
echo "beside a stopped one: $status"
kill -s KILL $stopped
