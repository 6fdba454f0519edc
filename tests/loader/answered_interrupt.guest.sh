# Shows: ^C is answered by a line when the session does not end at once: here another process holds the loaders' lock while the
# module is to be loaded, and then a begin probe is busy.
# script: busy_begin -g --suppress-time-limits busy_begin.stp
# stdout: ^answered while it waits to be loaded$
# stdout: ^status 0$
# stdout: ^answered while the session starts$
# stdout: ^status 0$

ended() {
	status=0
	wait $loader || status=$?
	echo "status $status"
}
hold /sys/module/kernel/uevent >held &
holder=$!
wait_for held held
spilerun busy_begin.ko >out 2>err &
loader=$!
# The second thread answers.
for tenth in $(seq 100); do [ "$(ls /proc/$loader/task | wc -l)" != 2 ] || break; pause 0.1; done
kill -INT $loader
wait_for err 'NOTICE: interrupted: waiting until the module is loaded'
loaded busy_begin || echo answered while it waits to be loaded
kill $holder
ended

start busy_begin began
kill -INT $loader
wait_for busy_begin.err 'NOTICE: interrupted: waiting for a begin probe'
spilerun status busy_begin | grep -q ': starting, ' && echo answered while the session starts
ended
