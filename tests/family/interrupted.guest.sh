# Shows: a session with thousands of probes in modules ends within a second when the loader is killed or the probes are armed, and
# within two, as is promised, when it is interrupted in the fast part of arming or among the kprobes (how soon by how fast a
# machine: `cargo xtask bench arming interrupted`). The kernel disarms them after that; status and -d work meanwhile, a second start waits,
# and the module goes by itself, or with -d if its loader was killed. Nothing is left behind.
# family: yes
# script: calls calls.stp
# script: copies copies.stp
# script: kept kept.stp
# stdout: ^INT after 1 s: status answers, gone in time, 0$
# stdout: ^-d: in time, in use$
# stdout: ^TERM after 6 s: status answers, gone in time, 0$
# stdout: ^KILL after 6 s: status answers, gone in time, 137$
# stdout: ^INT: gone in time, 0, copies 2400, disarming, a start waits, removed$
# stdout: ^KILL: gone in time, 137, disarming, a start waits, removed$
# stdout: ^kept: 0, removed$
# stdout: ^kept without a loader: 0 kprobes, copies 800, removed$
# stdout: ^left: 0 kprobes, 0 functions$
# limit: 200
# alone: yes

# Uptime in hundredths of a second.
now() { cut -d' ' -f1 /proc/uptime | tr -d .; }
# in_time HUNDREDTHS [SECONDS]: at most one second, or as many.
in_time() {
	[ $1 -lt $((${2:-1} * 100 * PATIENCE)) ] && echo "in time" || echo "after $(($1 * 10)) ms"
}
interrupt() {
	start calls began
	sleep $2
	[ -z "$3" ] || $3
	status_command='does not answer'
	! spilerun status calls | grep -q ': starting, ' || status_command=answers
	begin=$(now)
	stop $1
	[ $1 = KILL ] && seconds=1 || seconds=2
	took=$(in_time $(($(now) - begin)) $seconds)
	# The module of a killed loader stays, idle. -d waits until it is disarmed.
	[ $1 != KILL ] || spilerun -d calls
	removed calls
	echo "$1 after $2 s: status $status_command, gone $took, $status"
	grep -v 'become kprobes one by one\|in the background\|interrupted: ' calls.err >&2 || true
}
# disarms SIGNAL: the same when all probes are armed.
disarms() {
	start_armed copies began
	[ $1 != INT ] || for module in fam00 fam01 fam02 fam03 fam04 fam05; do echo 1 >/sys/module/$module/parameters/run; done
	begin=$(now)
	stop $1
	took=$(in_time $(($(now) - begin)))
	state=$(spilerun status copies | sed -n 's/.*: \(disarming\), .*/\1/p')
	again=$(second_start copies)
	[ $1 != KILL ] || spilerun -d copies
	removed copies
	[ $1 = KILL ] || grep -q 'NOTICE: the kernel is still disarming [0-9]* probes in the background' copies.err
	echo "$1: gone $took, $status, $(grep copies copies.out), $state, $again, removed" | sed 's/, ,/,/'
	grep -v 'become kprobes one by one\|in the background\|interrupted: ' copies.err >&2 || true
}
for child in $(seq 11 19); do modprobe fam$child; done
detach() {
	begin=$(now)
	spilerun -d calls 2>refused && exit 1
	took=$(in_time $(($(now) - begin)))
	grep -q 'in use by another spilerun' refused && echo "-d: $took, in use"
}
interrupt INT 1
interrupt TERM 6 detach
interrupt KILL 6
disarms INT
disarms KILL
# A kept session is disarmed in the background, too.
status=0
timeout $((60 * PATIENCE)) spilerun --keep -T 1 kept.ko >kept 2>&1 || status=$?
gone kept
echo "kept: $status, removed"
# Ended by its script while it has no loader, it is disarmed; its end probes run when a loader attaches.
spilerun -L kept.ko >kept 2>&1
for module in fam00 fam01; do echo 1 >/sys/module/$module/parameters/run; done
echo 1 >/proc/systemtap/kept/end
for second in $(seq $((60 * PATIENCE))); do
	[ "$(wc -l </sys/kernel/debug/kprobes/list)" != 0 ] || break
	sleep 1
done
kprobes=$(wc -l </sys/kernel/debug/kprobes/list)
loaded kept
spilerun -A kept >kept 2>&1
gone kept
echo "kept without a loader: $kprobes kprobes, $(grep copies kept), removed"
echo "left: $(wc -l </sys/kernel/debug/kprobes/list) kprobes, $(wc -l </sys/kernel/debug/tracing/enabled_functions) functions"
unload_family
