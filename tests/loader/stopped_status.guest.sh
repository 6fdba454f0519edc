# Shows: a user who stops a set-uid spilerun while it shows a session's status does not pin the module: the session ends,
# including one that was left running.
# script: ticks ticks.stp
# stdout: ^stopped while it looks$
# stdout: ^ended 0$
# stdout: ^stopped while it looks$
# stdout: ^ended from outside 0$
# limit: 90

printf 'spileusr:x:601:usr\n' >>/etc/group
add_users usr:5001
make_suid
# look: a user's status command, stopped at its first request to the part with root's rights.
look() {
	rm -f traced
	strace -f -u usr -o traced -e trace=ioctl -e inject=ioctl:signal=SIGSTOP:when=1 suid status ticks >/dev/null 2>&1 &
	tracer=$!
	wait_for traced 'stopped by SIGSTOP'
	echo stopped while it looks
}
# It then continues, and finds nothing.
let_go() {
	kill -CONT $(pidof suid spile-root spile-guard)
	wait $tracer || true
}

start ticks tick
look
stop
gone ticks
echo "ended $status"
let_go
spilerun -L ticks.ko >/dev/null 2>&1
look
status=0
spilerun -d ticks || status=$?
gone ticks
echo "ended from outside $status"
let_go
