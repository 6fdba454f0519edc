# Shows: while the kernel takes as long as it likes for one kprobe, a loader that is interrupted or killed ends, and the
# session's end probes run. Then `status` says "disarming", another start of the module waits and can be interrupted, and
# the module goes when the kernel is done. A signal that does not end the loader does not end arming, and the machine can be
# suspended meanwhile.
# script: held tests/probe/many/held.stp
# stdout: ^INT: ended 0, end probe 1, held, disarming, a start waits, removed, 0 kprobes$
# stdout: ^TERM: ended 0, end probe 1, held, disarming, a start waits, removed, 0 kprobes$
# stdout: ^KILL: ended 137, end probe 0, held, disarming, a start waits, removed, 0 kprobes$
# stdout: ^stopped and continued: starting, held; suspended; armed in spite of both$
# limit: 120

hold_step() {
	modprobe fault victim=held held=register_kprobe
	start held began "$@"
	for tenth in $(seq $((300 * PATIENCE))); do [ "$(holding)" != 1 ] || return 0; pause 0.1; done
	echo 'no step is held'
	return 1
}
holding() { cat /sys/module/fault/parameters/holding; }
is_held() { [ "$(holding)" = 1 ] && echo held || echo over; }
release() {
	echo 1 >/sys/module/fault/parameters/released
	removed held
	rmmod fault
}
# If the loader waits for the step, the step ends some time, and the test fails.
end_some_time() {
	(sleep $((30 * PATIENCE)); [ "$(holding)" != 1 ] || echo 1 >/sys/module/fault/parameters/released) &
	watchdog=$!
}

interrupt() {
	hold_step
	end_some_time
	stop $1
	after=$(is_held)
	state=$(spilerun status held | sed -n 's/.*: \(disarming\), .*/\1/p')
	again=$(second_start held)
	[ $1 != KILL ] || spilerun -d held &
	after="$after, $state, $again"
	[ "$(is_held)" = held ] || after="$after, released early"
	kill $watchdog
	release
	kprobes=$(wc -l </sys/kernel/debug/kprobes/list)
	echo "$1: ended $status, end probe $(grep -c ended held.out || true), $after, removed, $kprobes kprobes"
	grep -v 'in the background\|interrupted: ' held.err >&2 || true
}
interrupt INT
interrupt TERM
interrupt KILL

hold_step
kill -STOP $loader
kill -CONT $loader
spilerun status held | grep -q ': starting, ' && state=starting
state="$state, $(is_held)"
echo +3 >/sys/class/rtc/rtc0/wakealarm
echo mem >/sys/power/state && state="$state; suspended"
echo 1 >/sys/module/fault/parameters/released
armed held
echo "stopped and continued: $state; armed in spite of both"
stop INT
removed held
rmmod fault
