# Shows: aliases of the NFS client, its server and RPC on a mount of this machine's own export, against the counters of /proc/net/rpc.
# modules: nfsd nfs nfsv4
# guest: 6.1 6.12
# script: server tests/tapset/nfs/server.stp
# script: client tests/tapset/nfs/client.stp
# stdout: ^all as expected$
# limit: 90

# Newer kernels keep the state of clients with nfsdcld alone, which the guest lacks.
mkdir -p /export /mnt/nfs /var/lib/nfs/v4recovery
ifconfig lo 127.0.0.1 up
mount -t tmpfs none /export
mount -t nfsd nfsd /proc/fs/nfsd
echo 10 >/proc/fs/nfsd/nfsv4leasetime
echo 10 >/proc/fs/nfsd/nfsv4gracetime
# The answers of a mount daemon: the client 127.0.0.1 may write to /export, which has file system id 0.
echo 'nfsd 127.0.0.1 2000000000 all' >/proc/net/rpc/auth.unix.ip/channel
echo 'all /export 2000000000 9218 65534 65534 0' >/proc/net/rpc/nfsd.export/channel
printf 'all 1 \\x00000000 2000000000 /export\n' >/proc/net/rpc/nfsd.fh/channel
# Version 3 needs a port mapper.
echo '-2 -3 +4 +4.1 +4.2' >/proc/fs/nfsd/versions
# Newer kernels make no listener by themselves.
echo "tcp 2049" >/proc/fs/nfsd/portlist
echo 2 >/proc/fs/nfsd/threads
echo Y >/proc/fs/nfsd/v4_end_grace
mount -i -t nfs4 -o vers=4.2,addr=127.0.0.1,clientaddr=127.0.0.1 127.0.0.1:/ /mnt/nfs

# Requests so far: "rpc CALLS ..." of the server.
requests() { awk '$1 == "rpc" { print $2 }' /proc/net/rpc/nfsd; }
first=$(requests)
start client ready
client=$loader
start server ready
armed client
armed server
before=$(requests)
echo hello >/mnt/nfs/file
mv /mnt/nfs/file /mnt/nfs/other
rm /mnt/nfs/other
sync
after=$(requests)
stop
# From time to time the client makes requests of its own.
last=$(requests)
loader=$client
stop
umount /mnt/nfs
stop_nfsd

shows server '^dispatched ([0-9]+) sent \1 written 6$'
dispatched=$(awk '$1 == "dispatched" { print $2 }' server.out)
if [ "$dispatched" -lt $((after - before)) ] || [ "$dispatched" -gt $((last - first)) ]; then
	echo "between $((after - before)) and $((last - first)) requests, not $dispatched"
	failed=1
fi
shows server '^write of 6 at 0 of version 4, 1 blocks, stable [0-2]$'
shows server '^rename file to other of version 4 by 127.0.0.1$'
shows server '^renamed NFS_OK$'
shows server '^remove other of version 4 uid 0$'
shows client '^nfs.fop.write_iter file of 6 at 0$'
shows client '^rename file to other of version 4 at 127.0.0.1$'
shows client '^remove other$'
shows client '^version 4: 1 tasks$'
[ -z "$failed" ]
echo 'all as expected'
