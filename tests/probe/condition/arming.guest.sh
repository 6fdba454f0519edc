# Shows: probes with a condition that does not hold are disarmed, are armed and disarmed while the script runs, and are
# not hit while disarmed (except for a moment): neither handlers nor hit counts have them.
# script: armed tests/probe/condition/armed.stp
# stdout: ^at first: off$
# stdout: ^then: on$
# stdout: ^then: off$
# stdout: ^again: on$
# stdout: ^entries 1, returns 1, inside 1, events 1, ticks 1$
# stdout: ^hits of vfs_read: few$
# stdout: ^hits inside: few$
# stdout: ^nothing filtered$
# guest: 6.1

# The kernel's own lists: that of ftrace for the function, that of kprobes for the instruction inside it.
state() {
	functions=$(grep -c '^vfs_read ' /sys/kernel/debug/tracing/enabled_functions)
	inside=$(grep 'vfs_read+0x[1-9a-f]' /sys/kernel/debug/kprobes/list)
	case "$functions $inside" in
	"0 "*DISABLED*) echo off ;;
	"1 "*DISABLED*) echo half ;;
	"1 "*) echo on ;;
	*) echo "functions $functions: $inside" ;;
	esac
}
# turned STATE: waits for the state.
turned() {
	for tenth in $(seq 1 100); do
		[ "$(state)" != "$1" ] || break
		pause 0.1
	done
	state
}
reads() { dd if=/dev/zero of=/dev/null bs=1 count=$1 2>/dev/null; }

start armed began --stats=json
armed armed
echo "at first: $(turned off)"
reads 20000
echo 1 >/proc/systemtap/armed/on
echo "then: $(turned on)"
reads 200
sleep 0.3
echo 0 >/proc/systemtap/armed/on
echo "then: $(turned off)"
reads 20000
echo 1 >/proc/systemtap/armed/on
echo "again: $(turned on)"
reads 200
kill -INT $loader
wait $loader || cat armed.err
grep entries armed.out

# hits PROBE: from the probe's statistics.
hits() { grep -h '^{"probes"' armed.err | sed 's/{"point"/\n{"point"/g' | grep -F "$1" | sed 's/.*"hits":\([0-9]*\).*/\1/'; }
few() { [ "$1" -ge 300 ] && [ "$1" -lt 15000 ] && echo few || echo "$1"; }
echo "hits of vfs_read: $(few $(hits 'read_write.c:450\")",'))"
echo "hits inside: $(few $(hits 'kernel.statement'))"
filtered=$(grep -h '^{"probes"' armed.err | sed 's/"filtered":/\n/g' | awk -F, 'NR > 1 { sum += $1 } END { print sum + 0 }')
[ "$filtered" -lt 2000 ] && echo "nothing filtered" || echo "filtered: $filtered"
