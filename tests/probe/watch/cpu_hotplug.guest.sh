# Shows: a watchpoint works on a CPU that was offline when the session started, or went offline meanwhile.
# script: watched tests/probe/watch/cpu_hotplug.stp
# stdout: ^online: cpu1 31$
# stdout: ^offline: cpu0 32$
# stdout: ^online again: cpu1 33$
# absent: BUG:|Call Trace

# write_on WHEN CPU VALUE: writes the value on that CPU.
write_on() {
	sleep 1
	taskset "$2" sh -c "echo $3 >/proc/sys/vm/dirty_ratio"
	sleep 1
	echo "$1: $(tail -n 1 watched.out)"
}
cpu1=/sys/devices/system/cpu/cpu1/online
echo 0 >$cpu1
start watched begun
armed watched
echo 1 >$cpu1
write_on online 2 31
echo 0 >$cpu1
write_on offline 1 32
echo 1 >$cpu1
write_on 'online again' 2 33
stop
gone watched
