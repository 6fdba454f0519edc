# Shows: the example about contended locks of the kernel, by tracepoints of Linux 5.19, while four processes write to one file.
# guest: 6.1 6.12 7.3
# script: lock_contention examples/lock_contention.stp
# stdout: ^all as expected$

start_all lock_contention
writers=
for one in 1 2 3 4; do
	dd if=/dev/zero of=/tmp/one bs=1M count=50 conv=notrunc 2>/dev/null &
	writers="$writers $!"
done
# shellcheck disable=SC2086
wait $writers
kill -INT $loaders
wait $loaders
rm /tmp/one

failed=
# With PREEMPT_RT such a lock is one of the other kind.
case $(uname -v) in *PREEMPT_RT*) kind=rtmutex ;; *) kind='rwsem write' ;; esac
shows lock_contention '^ +WAITS +TOTAL us +MAX us KIND +TAKEN IN$'
shows lock_contention "^ +[1-9][0-9]* +[0-9]+ +[0-9]+ $kind +[a-z_]*write_iter\$"
! grep -E 'ERROR|WARNING' lock_contention.err || failed=1
[ -n "$failed" ] || echo all as expected
