# Shows: a loaded module that answers as a spile module would, but with wrong data, does no harm to loaders that attach
# to it or query it: an endless or random description is refused, a slow one can be interrupted; random answers, ring
# sizes and ring contents end in errors or a useless session, never in a panic, a crash, or unbounded memory, and an
# interrupt ends each within seconds.
# script: ticks ticks.stp
# modules: hostile
# limit: 300
# stdout: ^endless: 7 .*its description is larger than 64 MB.*, 7$
# stdout: ^interrupted: 7 .*Interrupted system call
# stdout: ^noise: 3 .*hostile.*, 3$
# stdout: ^rings: [1-9][0-9]* sessions, some records damaged$
# stdout: ^numbers: [1-9][0-9]* times$
# stdout: ^sizes: [1-9][0-9]* times$
# stdout: ^it can be removed$

# A valid description.
spilerun -L ticks.ko 2>/dev/null
cat /proc/spile-ticks >description
spilerun -d ticks
gone ticks
probes=0
# lie WHICH: selects its behaviour. A session that ended properly has removed it.
lie() {
	loaded hostile || modprobe hostile
	cat description >/dev/spile-hostile
	echo $probes >/sys/module/hostile/parameters/probes
	echo "$1" >/sys/module/hostile/parameters/lies
}
# status COMMAND...: its exit status, if that is a valid one; at most 400 MB of address space. 124 and 130: interrupted.
status() {
	s=0
	(ulimit -v 400000; exec timeout -s INT -k 20 ${seconds:-3} "$@") >out 2>err </dev/null || s=$?
	case $s in
	[0-9] | 124 | 130) ;;
	*) echo "$*: $s"; head -c 2000 err; exit 1 ;;
	esac
	! grep -E 'panic|RUST_BACKTRACE|memory allocation' err || exit 1
}

lie 0
status spilerun -A hostile
probes=$(sed -n 's/.*its description has \([0-9]*\)).*/\1/p' err)
lie 1
seconds=60
status spilerun -A hostile
attached=$s
message=$(head -n 1 err)
status spilerun status hostile
echo "endless: $attached $message, $s"
seconds=1
lie 33
status spilerun -A hostile
echo "interrupted: $s $(head -n 1 err)"
seconds=60
lie 2
status spilerun -A hostile
attached=$s
message=$(head -n 1 err)
status spilerun status hostile
echo "noise: $attached $message, $s"
seconds=2
damaged=0
for turn in 1 2 3 4 5 6; do
	lie $((turn % 2 * 16))
	status spilerun -A hostile
	! grep -qE "a record cannot be read|held data that is not a record" err || damaged=$((damaged + 1))
done
[ $damaged -gt 0 ] && echo "rings: $turn sessions, some records damaged"
for turn in $(seq 12); do
	lie $((4 + turn % 2 * 16))
	status spilerun status hostile
	status spilerun status --json hostile
	status spilerun -A hostile
done
echo "numbers: $turn times"
seconds=1
for turn in $(seq 20); do
	lie $((8 + turn % 2 * 4))
	status spilerun -A hostile
done
echo "sizes: $turn times"
lie 0
rmmod hostile
gone hostile
echo it can be removed
