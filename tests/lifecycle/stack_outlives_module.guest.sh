# Shows: a stored stack is printed and converted to text with the names that its code had, after the module was unloaded and
# others were loaded and unloaded, at the same address or not; likewise a stack of the module after it was loaded again. No
# offset near 2^64 is printed.
# script: stored stored_stacks.stp
# modules: ptlrpc
# stdout: ^ 0x[0-9a-f]+ : ldlm_resource_dump\+0x[0-9a-f]+/0x[0-9a-f]+ \[ptlrpc\]$
# stdout: ^ 0x[0-9a-f]+ : dump_set(\.cold)?\+0x[0-9a-f]+/0x[0-9a-f]+ \[ptlrpc\]$
# stdout: ^ldlm_resource_dump\+0x[0-9a-f]+/0x[0-9a-f]+ \[ptlrpc\]$
# stdout: ^first ffffffff[0-9a-f]{8}$
# stdout: ^dumped: [1-9][0-9]*, named: all$
# absent: /0xf{8}

start stored 'stack storing started'
echo 7 >/sys/module/ptlrpc/parameters/dump
sleep 2
rmmod ptlrpc
for round in 1 2 3; do
	modprobe lustre
	if [ $round = 2 ]; then
		modprobe ptlrpc
		echo 7 >/sys/module/ptlrpc/parameters/dump
		rmmod ptlrpc
	fi
	rmmod lustre
	sleep 1
done
stop INT
cat stored.out
# Each stack begins in the function: printed, as text, and the last one again.
dumped=$(grep -c 'ldlm_resource_dump+' stored.out)
begun=$(grep -c 'dump_set\(\.cold\)\?+' stored.out)
[ "$dumped" = "$begun" ] && named=all || named="$begun"
echo "dumped: $dumped, named: $named"
