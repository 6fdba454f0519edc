# Shows: who accesses a session's file with memory that another process withholds (FUSE, userfaultfd) has an error, and does not delay the
# session's end; one whose mappings another thread has locked by such memory is killed then. Memory that is merely not there yet comes.
# script: stuck withheld_memory.stp
# modules: fuse
# stdout: ^userfaultfd read: Bad address$
# stdout: ^untouched: read 9999, written 100, into read-only memory -1$
# stdout: ^FUSE read: Bad address, write: Bad address$
# stdout: ^locked waits$
# stdout: ^ended 0 in time, reader killed$
# limit: 90

# end NAME: interrupts the session; what does not end in time ends when the server does.
end() {
	kill -s INT $loader
	for tenth in $(seq $((150 * PATIENCE))); do loaded stuck || break; pause 0.1; done
	time='in time'
	! loaded stuck || time='late'
	kill -s KILL $server
	status=0
	wait $loader || status=$?
	umount -l $1
	gone stuck
}

add_users usr:5001
mkdir fs
chown usr fs
echo x >file
served 5001 fs file file >served.log 2>&1 &
server=$!
wait_for served.log served
start_armed stuck begun
proc=/proc/systemtap/stuck
timeout 20 load withheld read $proc/text userfaultfd >fault.out || true
echo "userfaultfd $(cat fault.out)"
load untouched $proc/text $proc/input
su usr -c "exec load withheld read $proc/text $PWD/fs/hangs" >read.out &
readers=$!
su usr -c "exec load withheld write $proc/input $PWD/fs/hangs" >write.out &
readers="$readers $!"
for tenth in $(seq $((50 * PATIENCE))); do ! [ -s read.out ] || ! [ -s write.out ] || break; pause 0.1; done
echo "FUSE $(cat read.out), $(cat write.out)"
su usr -c "exec load withheld locked $proc/text $PWD/fs/hangs" &
reader=$!
sleep $((3 * SLOWNESS))
kill -0 $reader
echo locked waits
end fs
reader_status=0
wait $reader || reader_status=$?
[ $reader_status = 137 ]
grep -q 'process .* was killed' stuck.err
echo "ended $status $time, reader killed"
