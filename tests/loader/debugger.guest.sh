# Shows: the caller of a set-uid spilerun cannot debug any of its processes, whatever fs.suid_dumpable is, from their
# start: neither ptrace(2), process_vm_writev(2), pidfd_getfd(2) nor files in /proc give the caller a descriptor, memory
# or rights; limits and priority of processes with root's rights cannot be changed; a spilerun that is started by a
# debugger has no rights.
# script: ticks ticks.stp
# limit: 120
# stdout: ^spile-root: all refused$
# stdout: ^spile-guard: all refused$
# stdout: ^suid: all refused$
# stdout: ^spile-start: all refused$
# stdout: ^the session continues$
# stdout: ^with suid_dumpable 1: spile-root all refused$
# stdout: ^with suid_dumpable 1: spile-guard all refused$
# stdout: ^with suid_dumpable 1: suid all refused$
# stdout: ^with suid_dumpable 1: spile-start all refused$
# stdout: ^started by a debugger: 4 .*needs CAP_SYS_MODULE
# stdout: ^traced: 4$
# stdout: ^from the first moment on: many tries, 0 successful$
# stdout: ^the same with suid_dumpable 1: many tries, 0 successful$

approve ticks.ko
printf 'spileusr:x:601:usr\n' >>/etc/group
add_users usr:5001
make_suid
enter_open
begin() {
	rm -f mine
	as usr 'suid ticks -o mine -c "sleep 1000"' >/dev/null 2>err &
	session=$!
	wait_for mine tick || { cat err; exit 1; }
}
ends() {
	kill -s INT $(named suid)
	wait $session || true
	unloaded ticks
}
begin
for name in spile-root spile-guard suid spile-start; do
	case $name in
	spile-root | spile-guard) all=all ;;
	*) all= ;;
	esac
	echo "$name: $(as usr "debugger $(named $name | tail -n 1) $all")"
done
lines=$(wc -l <mine)
sleep 1
[ "$(wc -l <mine)" -gt "$lines" ] && echo the session continues
ends
echo 1 >/proc/sys/fs/suid_dumpable
begin
for name in spile-root spile-guard suid spile-start; do
	echo "with suid_dumpable 1: $name $(as usr "debugger $(named $name | tail -n 1)")"
done
ends
echo 0 >/proc/sys/fs/suid_dumpable
echo "started by a debugger: $(status usr debugger run suid ticks -T 0.1) $(cat /tmp/err)"
gone ticks
echo "traced: $(status usr strace -f -o /dev/null suid ticks -T 0.1)"
gone ticks
echo "from the first moment on: $(as usr 'debugger race /usr/bin/suid ticks -T 0.5' 2>/dev/null | tail -n 1)"
unloaded ticks
echo 1 >/proc/sys/fs/suid_dumpable
echo "the same with suid_dumpable 1: $(as usr 'debugger race /usr/bin/suid ticks -T 0.5' 2>/dev/null | tail -n 1)"
unloaded ticks
echo 0 >/proc/sys/fs/suid_dumpable
