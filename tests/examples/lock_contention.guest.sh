# Shows: the example about contended locks of the kernel, by tracepoints of Linux 5.19.
# guest: 6.1 6.12 7.3
# script: lock_contention examples/lock_contention.stp
# stdout: ^all as expected$

start_all lock_contention
# Both write to one pipe.
(dd if=/dev/zero bs=1 count=30000 & dd if=/dev/zero bs=1 count=30000; wait) 2>/dev/null | cat >/dev/null
kill -INT $loaders
wait $loaders

failed=
shows lock_contention '^ +WAITS +TOTAL us +MAX us KIND +TAKEN IN$'
! grep -E 'ERROR|WARNING' lock_contention.err || failed=1
[ -n "$failed" ] || echo all as expected
