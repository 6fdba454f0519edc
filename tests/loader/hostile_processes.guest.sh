# Shows: processes of a user whose code root's session names (print_ubacktrace()) do not hold it up, and have nothing opened: a device is mounted where
# the map of the code is looked for; the place of the map is on an overlay of a file system that does not answer; unwind information that takes hours
# is given up with the session; the lock of the mappings is held when they are to be read, and another user's code is named all the same. A
# session begins while a process of root's holds that lock. In a PID
# namespace the loader finds the map by the process's number there.
# script: names hostile_processes.stp
# modules: softdog fuse overlay
# limit: 200
# stdout: ^bound: shown, the watchdog is inactive, 0$
# stdout: ^overlay: (shown, goes on, 0|cannot be mounted)$
# stdout: ^frames: shown, goes on, 0$
# stdout: ^locks: shown, goes on, others shown, 0$
# stdout: ^waits: goes on, 0$
# stdout: ^in a namespace: made_at_run_time$
# stdout: ^left: 0$

add_users usr:5001
chmod 1777 /tmp
[ -c /dev/watchdog ] || mknod /dev/watchdog c 10 130
[ "$(cat /sys/class/watchdog/watchdog0/state)" = inactive ]
# ends SECONDS PROCESS: sets $status, also if it does not end; then it is not waited for.
ends() {
	status='does not end'
	for tenth in $(seq $(($1 * 10 * PATIENCE))); do
		if ! kill -0 $2 2>/dev/null; then
			status=0
			wait $2 || status=$?
			return
		fi
		pause 0.1
	done
}
# attack USER ARGUMENTS: a process of that user's, which is ready.
attack() {
	user=$1
	shift
	rm -f attacker.out
	su "$user" -c "exec attacker $*" >attacker.out 2>&1 &
	wait_for attacker.out ready 20
}
# watch: a session that begins, shows a stack and goes on, if it does; $loader is its process. Some attackers make their calls only once.
watch() {
	rm -f names.out
	spilerun names.ko >names.out 2>names.err &
	loader=$!
	{ wait_for names.out begins 20 >/dev/null && armed names; } || { echo "it does not begin"; cat names.err; }
}
goes_on() {
	turns=$(grep -c alive names.out || true)
	for tenth in $(seq $((100 * PATIENCE))); do
		[ "$(grep -c alive names.out || true)" -le $((turns + 3)) ] || { echo 'goes on'; return; }
		pause 0.1
	done
	echo 'stands still'
}
shown() { wait_for names.out "$1" 20 >/dev/null && echo shown || echo 'not shown'; }
stop_session() {
	kill -s INT $loader
	ends 15 $loader
	unloaded names
	kill -s KILL $(named attacker) 2>/dev/null || true
}

watch
attack usr bound /dev/watchdog
seen=$(shown attacker)
went=$(goes_on)
stop_session
echo "bound: $seen, the watchdog is $(cat /sys/class/watchdog/watchdog0/state), $status"

watch
if attack usr overlay served; then
	seen=$(shown attacker)
	went=$(goes_on)
	stop_session
	echo "overlay: $seen, $went, $status"
else
	stop_session
	grep '^overlay:' attacker.out
	echo 'overlay: cannot be mounted'
fi
kill -s KILL $(named served) 2>/dev/null || true

watch
attack usr frames
seen=$(shown attacker)
went=$(goes_on)
stop_session
echo "frames: $seen, $went, $status"

# serve: a file system of the user's. release: its server ends, and so do those that wait for it.
serve() {
	mkdir -p /tmp/serve
	chown usr /tmp/serve
	served 5001 /tmp/serve /etc/passwd /etc/passwd >serve.log 2>&1 &
	server=$!
	wait_for serve.log served
}
release() {
	kill -s KILL $server
	umount -l /tmp/serve
	for tenth in $(seq $((100 * PATIENCE))); do [ -n "$(named attacker)" ] || return 0; pause 0.1; done
	echo 'attackers are left'
}
serve
watch
attack usr locks /tmp/serve/hangs
seen=$(shown attacker)
went=$(goes_on)
# Another user's file without a name is named meanwhile.
cp /usr/bin/stacks gone
exec 5<gone
rm gone
/proc/self/fd/5 ten 100000000 &
other=$!
exec 5<&-
named=$(shown ten_5)
kill -s KILL $other
stop_session
echo "locks: $seen, $went, others $named, $status"
release
serve
attack root waits /tmp/serve/hangs
watch
went=$(goes_on)
stop_session
echo "waits: $went, $status"
release

attacker apart spilerun names.ko -c 'stacks made' >names.out 2>names.err || cat names.err
echo "in a namespace: $(grep -o made_at_run_time names.out | head -n 1)"
echo "left: $(grep -c '^names' /proc/modules)"
