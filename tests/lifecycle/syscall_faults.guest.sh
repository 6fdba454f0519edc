# Shows: of a script whose only probe of system calls needs both tracepoints, the entry's and the return's, nothing is left at
# either where one of them cannot be registered: system calls go on after the module is gone.
# script: calls tests/lifecycle/syscall_faults.stp
# stdout: ^tracepoints refused: [2-9]$
# stdout: ^kernel: quiet$
# limit: 120

modprobe fault victim=calls
parameters=/sys/module/fault/parameters
at=1
refused=0
while echo $at >$parameters/at; do
	spilerun calls.ko >out 2>err || true
	failed=$(cat $parameters/failed)
	unloaded calls
	[ -n "$failed" ] || break
	[ $failed != tracepoint_probe_register ] || refused=$((refused + 1))
	at=$((at + 1))
done
rmmod fault
echo "tracepoints refused: $refused"
dmesg | grep -E 'WARNING|BUG|Oops|stall|soft lockup|Call Trace|leak' || echo kernel: quiet
