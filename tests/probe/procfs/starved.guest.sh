# Shows: a process that reads or opens a session's file and gets nearly no CPU time, so that it stays in the call for many seconds,
# delays neither the end of the session nor the removal of its module, and is a process of the
# lowest priority again (one that opens it may not have been in the call: it is left as it was).
# script: read starved.stp
# limit: 90
# stdout: ^read: ended 0, removed, policy 0, nice 19$
# stdout: ^open: ended 0, removed, policy (0, nice 19|5, nice 0)$

for what in read open; do
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
	[ $took -lt $((6 * SLOWNESS)) ] || status="$status after $took s"
	gone read
	# The 41st field and the 19th.
	policy=$(sed 's/.*) //' /proc/$reader/stat | cut -d ' ' -f 39) nice=$(sed 's/.*) //' /proc/$reader/stat | cut -d ' ' -f 17)
	echo "$what: ended $status, removed, policy $policy, nice $nice"
	kill -KILL $reader
	wait $reader || true
	cat err >&2
done
