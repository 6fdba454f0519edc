# Shows: arming thousands of kprobes ends when the loader is interrupted or killed at any moment, and nothing is left behind.
# script: inlined tests/probe/many/inlined.stp
# stdout: ^INT after 1 s: armed in part, gone in time, 0$
# stdout: ^TERM after 4 s: armed in part, gone in time, 0$
# stdout: ^KILL after 3 s: armed in part, gone in time, 137$
# stdout: ^kprobes left: 0$
# limit: 120
# alone: yes

now() { cut -d' ' -f1 /proc/uptime | tr -d .; }
interrupt() {
	start inlined began
	sleep $2
	armed=part
	spilerun status inlined | grep -q ': running, ' && armed=full
	begin=$(now)
	stop $1
	[ $1 = KILL ] || removed inlined
	took=$(($(now) - begin))
	[ $took -lt $((200 * SLOWNESS)) ] && took='in time' || took="after $((took * 10)) ms"
	echo "$1 after $2 s: armed in $armed, gone $took, $status"
	grep -v 'become kprobes one by one' inlined.err >&2 || true
}
interrupt INT 1
interrupt TERM 4
interrupt KILL 3
spilerun -d inlined
gone inlined
echo "kprobes left: $(wc -l </sys/kernel/debug/kprobes/list)"
