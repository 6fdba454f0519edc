# Shows: a process that reads a session's file into memory whose pages are on a network file system, and waits because the server is gone,
# can be killed; then the session ends.
# modules: nfsd nfs nfsv3
# script: stuck withheld_memory.stp
# stdout: ^it waits$
# stdout: ^killed: 137$
# stdout: ^ended: 0$
# limit: 120

mkdir -p /export /mnt/nfs
ifconfig lo 127.0.0.1 up
mount -t tmpfs none /export
head -c 65536 /dev/zero >/export/file
mount -t nfsd nfsd /proc/fs/nfsd
echo 'nfsd 127.0.0.1 2000000000 all' >/proc/net/rpc/auth.unix.ip/channel
echo 'all /export 2000000000 9218 65534 65534 0' >/proc/net/rpc/nfsd.export/channel
printf 'all 1 \\x00000000 2000000000 /export\n' >/proc/net/rpc/nfsd.fh/channel
# Port mapper and mount daemon.
rpcd &
rpcd=$!
sleep 1
echo '-2 +3 -4 -4.1 -4.2' >/proc/fs/nfsd/versions
# Newer kernels make no listener by themselves.
echo "tcp 2049" >/proc/fs/nfsd/portlist
echo 2 >/proc/fs/nfsd/threads
# Not by the type nfs, which this mount program handles by itself.
mount -i -t nfs4 -o vers=3,nolock,proto=tcp,addr=127.0.0.1,port=2049,mountaddr=127.0.0.1,mountport=635,mountproto=tcp,mountvers=3 127.0.0.1:/export /mnt/nfs

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
for tenth in $(seq $((100 * PATIENCE))); do grep -q '^State:.[^Z]' /proc/$reader/status 2>/dev/null || break; sleep 0.1; done
if grep -q '^State:.[^Z]' /proc/$reader/status 2>/dev/null; then
	status="does not end"
else
	wait $reader || status=$?
fi
echo "killed: $status"
kill -INT $loader
for tenth in $(seq $((100 * PATIENCE))); do loaded stuck || break; sleep 0.1; done
loaded stuck || { status=0; wait $loader || status=$?; echo "ended: $status"; }
ifconfig lo 127.0.0.1 up
sleep 1
umount -l /mnt/nfs
kill $rpcd
