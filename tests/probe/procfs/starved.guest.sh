# Shows: a process that reads or opens a session's file and gets nearly no CPU time, so that it stays in the call for many seconds, neither
# delays the end of the session nor is killed; the module goes when it has left.
# script: read starved.stp
# limit: 180
# stdout: ^read: ended 0, alive, removed$
# stdout: ^open: ended 0, alive, removed$

for what in read open; do
	rm -f out
	spilerun read.ko >out 2>err &
	loader=$!
	wait_for out begun
	armed read
	: >starved.out
	starved $what /proc/systemtap/read/text >starved.out &
	reader=$!
	wait_for starved.out starved
	sleep 3
	began=$(cut -d. -f1 /proc/uptime)
	kill -INT $loader
	status=0
	wait $loader || status=$?
	took=$(($(cut -d. -f1 /proc/uptime) - began))
	# While other processes run all the time, it would be more than a minute.
	[ $took -lt $((20 * SLOWNESS)) ] || status="$status after $took s"
	alive=alive
	kill -0 $reader || alive=dead
	killall -KILL starved
	wait $reader || true
	for tenth in $(seq $((300 * PATIENCE))); do loaded read || break; pause 0.1; done
	gone read
	echo "$what: ended $status, $alive, removed"
	cat err >&2
done
