# Shows: a CPU that was offline when the session started gets its events when it comes online, and again after it was offline.
# script: back tests/probe/perf/cpu_hotplug.stp
# stdout: ^came: yes$
# stdout: ^went: yes$
# stdout: ^came again: yes$
# absent: WARNING|BUG
cpu() {
	echo $1 >/sys/devices/system/cpu/cpu1/online
	taskset 2 sh -c 'while :; do :; done' 2>/dev/null &
	sleep 2.5
	kill $! 2>/dev/null || true
}
# The latest counts.
told() {
	if tail -n 1 back.out | grep -q "^cpu1 $2"; then echo "$1: yes"; else echo "$1: no"; cat back.out; fi
}
echo 0 >/sys/devices/system/cpu/cpu1/online
start back cpu1
sleep 1
cpu 1
told came '[1-9][0-9]* [1-9]'
cpu 0
told went '0 0$'
cpu 1
told 'came again' '[1-9][0-9]* [1-9]'
stop INT
