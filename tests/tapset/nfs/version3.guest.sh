# Shows: aliases of NFS version 3, of client and server, against the server's own count of each procedure.
# modules: nfsd nfs nfsv3
# script: server tests/tapset/nfs/server3.stp
# script: client tests/tapset/nfs/client3.stp
# stdout: ^all as expected$
# limit: 90

mount_nfs

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
# Read from the server: the client's copy is dropped. What was used a moment ago stays at first.
for turn in 1 2 3; do echo 3 >/proc/sys/vm/drop_caches; done
cat /mnt/nfs/other >/dev/null
! cat /mnt/nfs/missing 2>/dev/null || exit 1
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
shows server '^lookups found 1, did not 1$'
shows server '^dispatched [1-9][0-9]* of version 3, 0 of 4$'
shows client '^nfs.proc3.create file at 127.0.0.1$'
shows client '^nfs.proc3.write_setup of 6 at 0$'
shows client '^rename file to other of version 3$'
shows client '^nfs.proc3.remove other$'
shows client '^writes 1 reads 1, lookups 1, tasks of version 3: 1, of others: 0$'
[ -z "$failed" ]
echo 'all as expected'
