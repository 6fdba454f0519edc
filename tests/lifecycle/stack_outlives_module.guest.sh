# Shows: a stack that a script has stored is printed by the names that its code had, when the module is gone and others have come
# and gone since; no size near 2^64 is printed.
# script: stored stored_stacks.stp
# modules: ptlrpc
# stdout: ^ 0x[0-9a-f]+ : ldlm_resource_dump\+0x[0-9a-f]+/0x[0-9a-f]+ \[ptlrpc\]$
# stdout: ^ 0x[0-9a-f]+ : dump_set(\.cold)?\+0x[0-9a-f]+/0x[0-9a-f]+ \[ptlrpc\]$
# stdout: ^printed$
# absent: /0xf{8}

start stored 'stack storing started'
echo 7 >/sys/module/ptlrpc/parameters/dump
sleep 2
rmmod ptlrpc
for round in 1 2 3; do
	modprobe lustre
	rmmod lustre
	sleep 1
done
stop INT
cat stored.out
echo printed
