# Shows: a process that reads a session's file into memory whose pages are on a network file system, and waits because the server is gone,
# can be killed; then the session ends.
# modules: nfsd nfs nfsv3
# script: stuck withheld_memory.stp
# stdout: ^it waits$
# stdout: ^killed: 137$
# stdout: ^ended: 0$
# limit: 120

mount_nfs
head -c 65536 /dev/zero >/export/file

start_armed stuck begun
# It has opened the file before the server ends.
load withheld late /proc/systemtap/stuck/text /mnt/nfs/file >read.out &
reader=$!
sleep $((1 * SLOWNESS))
# The network, not the server, which would wait for its threads.
ifconfig lo down
sleep $((3 * SLOWNESS))
grep -q '^State:.[DS]' /proc/$reader/status && [ ! -s read.out ] && echo it waits
kill -KILL $reader
status=0
for tenth in $(seq $((100 * PATIENCE))); do grep -q '^State:.[^Z]' /proc/$reader/status 2>/dev/null || break; pause 0.1; done
if grep -q '^State:.[^Z]' /proc/$reader/status 2>/dev/null; then
	status="does not end"
else
	wait $reader || status=$?
fi
echo "killed: $status"
kill -INT $loader
for tenth in $(seq $((100 * PATIENCE))); do loaded stuck || break; pause 0.1; done
loaded stuck || { status=0; wait $loader || status=$?; echo "ended: $status"; }
# Nothing is left for tests behind this one in the guest.
ifconfig lo 127.0.0.1 up
for tenth in $(seq $((200 * PATIENCE))); do ! umount -f /mnt/nfs 2>/dev/null || break; pause 0.1; done
kill $rpcd
stop_nfsd
