# Shows: aliases of NFS version 3, of client and server, against the server's own count of each procedure.
# modules: nfsd nfs nfsv3
# script: server tests/tapset/nfs/server3.stp
# script: client tests/tapset/nfs/client3.stp
# stdout: ^all as expected$
# limit: 90

mkdir -p /export /mnt/nfs
ifconfig lo 127.0.0.1 up
mount -t tmpfs none /export
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

# NAME CALLS of the procedures that the scripts look at (RFC 1813): the fields behind "proc3 22".
counted() {
	awk '$1 == "proc3" { print "lookup", $6; print "read", $9; print "write", $10; print "create", $11; print "remove", $15; print "rename", $17; print "commit", $24 }' /proc/net/rpc/nfsd
}

start client ready
client=$loader
start server ready
armed client
armed server
counted >before
echo hello >/mnt/nfs/file
mv /mnt/nfs/file /mnt/nfs/other
# Read from the server: the client's copy is dropped.
echo 3 >/proc/sys/vm/drop_caches
cat /mnt/nfs/other >/dev/null
rm /mnt/nfs/other
sync
counted >after
stop
loader=$client
stop
umount /mnt/nfs
kill $rpcd
stop_nfsd

awk 'FILENAME == "before" { before[$1] = $2 } FILENAME == "after" { n[$1] = $2 - before[$1] }
	FILENAME == "server.out" && ($1 in n) && NF == 2 { reported[$1] = $2 }
	END { for (what in n) if (reported[what] + 0 != n[what]) { print what ": reported " reported[what] + 0 ", counted " n[what]; wrong = 1 } exit wrong }' before after server.out || failed=1
shows server '^nfsd.proc3.create file by 127.0.0.1 uid 0$'
shows server '^nfsd.proc3.write of 6 at 0, 1 blocks$'
shows server '^nfsd.proc3.rename file to other$'
shows server '^nfsd.proc3.remove other$'
shows server '^nfsd.proc3.write.return NFS_OK$'
shows server '^dispatched [1-9][0-9]* of version 3, 0 of 4$'
shows client '^nfs.proc3.create file at 127.0.0.1$'
shows client '^nfs.proc3.write_setup of 6 at 0$'
shows client '^rename file to other of version 3$'
shows client '^nfs.proc3.remove other$'
shows client '^writes 1 reads 1, lookups 1, tasks of version 3: 1, of others: 0$'
[ -z "$failed" ]
echo 'all as expected'
