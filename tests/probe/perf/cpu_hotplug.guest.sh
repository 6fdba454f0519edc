# Shows: a CPU that was offline when the session started gets its events when it comes online, and again after it was offline.
# script: back tests/probe/perf/cpu_hotplug.stp
# stdout: ^online: yes$
# stdout: ^offline: yes$
# stdout: ^online again: yes$
# absent: WARNING|BUG
cpu() {
	echo $1 >/sys/devices/system/cpu/cpu1/online
	taskset 2 sh -c 'while :; do :; done' 2>/dev/null &
	sleep 2.5
	kill $! 2>/dev/null || true
}
# latest WHEN PATTERN: whether the latest counts of CPU 1 match.
latest() {
	if tail -n 1 back.out | grep -q "^cpu1 $2"; then echo "$1: yes"; else echo "$1: no"; cat back.out; fi
}
echo 0 >/sys/devices/system/cpu/cpu1/online
start back cpu1
sleep 1
cpu 1
latest online '[1-9][0-9]* [1-9]'
cpu 0
latest offline '0 0$'
cpu 1
latest 'online again' '[1-9][0-9]* [1-9]'
stop INT
