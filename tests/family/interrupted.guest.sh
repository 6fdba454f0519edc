# Shows: arming 24,000 probes in modules ends within a second when the loader is interrupted or killed, in the fast part and among
# the kprobes; status and -d work meanwhile; nothing is left behind.
# family: yes
# script: calls calls.stp
# stdout: ^INT after 1 s: status answers, removed in time, 0$
# stdout: ^TERM after 6 s: status answers, removed in time, 0$
# stdout: ^KILL after 6 s: status answers, removed in time, 137$
# stdout: ^-d: refused in time, in use$
# stdout: ^left: 0 kprobes, 0 functions$
# limit: 200
# alone: yes

# Uptime in hundredths of a second.
now() { cut -d' ' -f1 /proc/uptime | tr -d .; }
within_a_second() {
	[ $1 -lt $((100 * PATIENCE)) ] && echo in time || echo "after $(($1 * 10)) ms"
}
interrupt() {
	start calls began
	sleep $2
	status_command='does not answer'
	! spilerun status calls | grep -q ': starting, ' || status_command=answers
	begin=$(now)
	stop $1
	took=$(within_a_second $(($(now) - begin)))
	# The module of a killed loader stays, idle.
	[ $1 != KILL ] || spilerun -d calls
	gone calls
	echo "$1 after $2 s: status $status_command, removed $took, $status"
	grep -v 'become kprobes one by one' calls.err >&2 || true
}
for child in $(seq 11 19); do modprobe fam$child; done
interrupt INT 1
interrupt TERM 6
interrupt KILL 6
start calls began
sleep 3
begin=$(now)
spilerun -d calls 2>refused && exit 1
took=$(within_a_second $(($(now) - begin)))
grep -q 'in use by another spilerun' refused && echo "-d: refused $took, in use"
stop INT
gone calls
echo "left: $(wc -l </sys/kernel/debug/kprobes/list) kprobes, $(wc -l </sys/kernel/debug/tracing/enabled_functions) functions"
unload_family
