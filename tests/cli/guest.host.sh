# Shows: --guest runs the script with its command on the same kernel in a virtual machine, and returns its status.
# limit: 120
# stdout: ^read by dd$
# stdout: ^guest$
# stdout: ^status 0$
# stdout: ^status 1$
# stderr: ERROR: division by 0 near operator '/' at <input>:1:23 in probe begin

status=0
"$SPILE" --guest -r "$RELEASE" -c 'dd if=/etc/hostname' \
	-e 'probe kernel.function("vfs_read") { if (execname() == "dd" && !n++) printf("read by %s\n", execname()) } global n' >out || status=$?
grep '^read by dd$' out | head -n 1
grep guest out
echo "status $status"
status=0
"$SPILE" --guest -r "$RELEASE" -e 'probe begin { print(1 / (1 - 1)) }' || status=$?
echo "status $status"
