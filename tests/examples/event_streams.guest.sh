# Shows: the examples that print calls, requests, turns on the CPU and connections as they come, and those about functions named on the
# command line, under a known load.
# modules: loop
# script: slow_opens -G limit_us=0 examples/slow_opens.stp
# script: biolatency examples/biolatency.stp
# script: biosnoop examples/biosnoop.stp
# script: bitesize examples/bitesize.stp
# script: syncsnoop examples/syncsnoop.stp
# script: statsnoop -G failed=1 examples/statsnoop.stp
# script: dcstat examples/dcstat.stp
# script: mountsnoop examples/mountsnoop.stp
# script: fslatency -G type=rootfs examples/fslatency.stp
# script: vfsstat examples/vfsstat.stp
# script: capable examples/capable.stp
# script: exitsnoop examples/exitsnoop.stp
# script: naps examples/naps.stp
# script: slabs -G interval=1 examples/slabs.stp
# script: hardirqs examples/hardirqs.stp
# script: cpudist examples/cpudist.stp
# script: runqlen examples/runqlen.stp
# script: runqslower -G limit_us=1 examples/runqslower.stp
# script: tcplife examples/tcplife.stp
# script: tcpretrans examples/tcpretrans.stp
# script: tcpaccept examples/tcpaccept.stp
# script: tcprtt examples/tcprtt.stp
# script: tcpsynbl examples/tcpsynbl.stp
# script: listens examples/listens.stp
# script: kmemleak -DMAXACTION=1000000 examples/kmemleak.stp
# script: timehist examples/timehist.stp
# script: funccount examples/funccount.stp vfs_*
# script: funclatency examples/funclatency.stp vfs_read
# script: stackcount examples/stackcount.stp vfs_write
# script: function_graph examples/function_graph.stp vfs_read 1
# script: strace examples/strace.stp
# stdout: ^all as expected$
# limit: 300

ifconfig lo 127.0.0.1 up
# run NAME COMMAND: a session for this command alone.
run() { spilerun $1.ko -c "$2" >$1.out 2>$1.err || { echo "$1: status $?"; cat $1.err; exit 1; }; }

start_all slow_opens biolatency biosnoop bitesize syncsnoop statsnoop dcstat mountsnoop fslatency vfsstat capable exitsnoop naps slabs
dd if=/dev/zero of=/tmp/disk bs=1M count=8 2>/dev/null
losetup /dev/loop0 /tmp/disk
dd if=/dev/zero of=/dev/loop0 bs=64k count=16 conv=fsync 2>/dev/null
cat /no/such/file /etc/hostname >/dev/null 2>&1 || true
ls -l /no/such/file 2>/dev/null || true
mkdir -p /tmp/mounted
mount -t tmpfs none /tmp/mounted
umount /tmp/mounted
load sleep 10
sh -c 'exit 3' || true
sleep 100 &
kill -KILL $!
wait $! || true
losetup -d /dev/loop0
sleep 3
kill -INT $loaders || cat ./*.err
wait $loaders || true

loaders=
start_all hardirqs cpudist runqlen runqslower tcplife tcpretrans tcpaccept tcprtt tcpsynbl listens kmemleak timehist
load tcp 10
# The addresses of its ends differ, so that one cannot be printed for the other.
nc -l -p 8082 </dev/null >/dev/null &
for tenth in $(seq 100); do
	! grep -q ':1F92 0*:0000 0A' /proc/net/tcp /proc/net/tcp6 || break
	pause 0.1
done
nc -w 3 127.0.0.2 8082 </dev/null >/dev/null || true
echo interrupts >/dev/ttyS0 || true
load burn 300
# No host has this address, so the first segment is retransmitted.
ip route add default dev lo 2>/dev/null || true
nc -w 3 192.0.2.1 9 </dev/null 2>/dev/null || true
sleep 1
kill -INT $loaders || cat ./*.err
wait $loaders || true

run funccount 'cat /etc/hostname'
run funclatency 'dd if=/etc/hostname of=/dev/null'
run stackcount 'dd if=/dev/zero of=/tmp/written bs=4k count=5'
run function_graph 'dd if=/etc/hostname of=/dev/null'
run strace 'cat /etc/hostname'

shows slow_opens '^[0-9:]{8} cat +[0-9]+ +[0-9]+ ENOENT +/no/such/file$'
shows slow_opens '^[0-9:]{8} cat +[0-9]+ +[0-9]+ +/etc/hostname$'
shows biolatency '^device 7:0, [1-9][0-9]* requests, [0-9]+ us on average$'
shows biosnoop '^[0-9:]{8} (dd|kworker.*) +7:0 +W +0 +[1-9][0-9]* +[0-9]+$'
shows bitesize '^(dd|kworker.*): [1-9][0-9]* requests, [1-9][0-9]* bytes on average$'
shows syncsnoop '^[0-9:]{8} dd +[0-9]+ fsync +[0-9]+ 0$'
shows statsnoop '^(ls|exe) +[0-9]+ ENOENT +/no/such/file$'
if grep -v ' E[A-Z]* ' statsnoop.out | grep -v '^COMMAND'; then failed=1; fi
shows dcstat '^ +[1-9][0-9]* +[0-9]+ +[0-9]+ +[0-9]+$'
shows mountsnoop '^[0-9:]{8} mount +[0-9]+ done +mount none on /tmp/mounted, type tmpfs$'
shows mountsnoop '^[0-9:]{8} umount +[0-9]+ done +umount /tmp/mounted$'
shows fslatency '^rootfs, vfs_write: [1-9][0-9]* calls, [0-9]+ us on average'
# The loop device may synchronise its file for that of dd, some kernels twice.
shows vfsstat '^[0-9:]{8} +[1-9][0-9]* +[1-9][0-9]* +[1-9][0-9]* +[0-9]+ +[123]$'
shows capable '^ +[1-9] mount +0 SYS_ADMIN +granted$'
shows exitsnoop '^[0-9:]{8} sh +[0-9]+ +[0-9]+ +[0-9]+ exit 3$'
shows exitsnoop '^[0-9:]{8} (sh|sleep|exe) +[0-9]+ +[0-9]+ +[0-9]+ signal 9$'
shows naps '^ +[0-9]+ load +10 +1[0-9]{4} +1[0-9]{4}$'
shows slabs '^(filp|names_cache) +[1-9][0-9]* +[1-9][0-9]*$'
shows hardirqs '^ +4 ttyS0 +[1-9][0-9]* +[0-9]+ +[1-9][0-9]*$'
shows cpudist '^[1-9][0-9]* runs, [1-9][0-9]* us on average, [0-9]+ at most$'
shows runqlen '^ +0 +[1-9][0-9]* +[1-9]'
shows runqslower '^[0-9:]{8} +[0-9]+ [^ ]+ +[0-9]+ +[1-9][0-9]* [^ ]+'
shows tcplife '^load +[0-9]+ 127.0.0.1:[1-9][0-9]* +127.0.0.1:8080 +100[0-9] +1001 +[0-9]+$'
shows tcplife '^load +[0-9]+ 127.0.0.1:8080 +127.0.0.1:[1-9][0-9]* +1001 +1001 +[0-9]+$'
shows tcplife '^nc +[0-9]+ 127.0.0.1:[1-9][0-9]* +127.0.0.2:8082 '
! grep -E '^[0-9:]{8} 192.0.2.1:' tcpretrans.out || { echo 'tcpretrans: the remote address for the local one'; failed=1; }
shows tcpretrans '^[0-9:]{8} [0-9.]+:[0-9]+ +192.0.2.1:9 +TCP_SYN_SENT$'
shows tcpaccept '^[0-9:]{8} load +[0-9]+ 127.0.0.1:8080 +127.0.0.1:[1-9][0-9]* *$'
shows tcprtt '^127.0.0.1: [1-9][0-9]* segments, [1-9][0-9]* us on average'
shows tcpsynbl '^port 8080, at most 8: 1[0-9] connections, [0-8] waiting at most$'
shows listens '^[0-9:]{8} load +[0-9]+ 127.0.0.1:8080 +8 listens$'
shows kmemleak '^ +[1-9][0-9]* +[1-9][0-9]* [a-z_]+'
shows timehist '^ +[0-9]+ +[0-9]+ load +[0-9]+ +[0-9]+ +[0-9]+ +[1-9][0-9]*$'
shows funccount '^ +[1-9][0-9]* vfs_open$'
shows funclatency '^vfs_read: [1-9][0-9]* calls, [1-9][0-9]* ns on average, [0-9]+ at most$'
shows stackcount '^[1-9][0-9]* times:$'
shows stackcount ' : ksys_write\+0x'
shows function_graph '^ +\|  vfs_read\(\) \{$'
shows function_graph '^ +[0-9]+\.[0-9]{3} us \|    \} /\* rw_verify_area \*/$'
shows strace '^ +[0-9]+ +[0-9]+ us openat\(AT_FDCWD, "/etc/hostname", O_RDONLY.*\) = 3$'
[ -z "$failed" ]
echo all as expected
