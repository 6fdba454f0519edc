# Shows: a virtual machine that does not end after a signal, as one whose kernel hangs: spile says how to end it, two more signals do, and a
# minute without output does, too.
# limit: 240
# stdout: ^three signals: 1, begun stands$
# stdout: ^the virtual machine has not ended: two more signals end it at once, as does another 50 s without output$
# stdout: ^the virtual machine was killed, as it did not end after a signal$
# stdout: ^one: 1, begun stands$
# stdout: ^nothing came from the virtual machine for 60 s: it is ended$
# stdout: ^machines left: 0$

export SPILE_CACHE_DIR=$PWD/cache TMPDIR=$PWD/tmp
mkdir tmp
cp -r "$CACHE" cache
echo 'probe begin { println("begun") }' >begun.stp
# A loader that is stopped, and a shell that takes no signal: to the host it is a kernel that hangs.
stand_still() { exec "$SPILE" --guest -r "$RELEASE" -c 'trap "" INT TERM; kill -STOP $PPID; echo stands; sleep 1000' begun.stp; }
(stand_still) >one.out 2>one.err &
one=$!
(stand_still) >three.out 2>three.err &
three=$!
until_there() {
	for tenth in $(seq 1200); do
		! grep -qs "$1" $2 || return 0
		sleep 0.1
	done
}
until_there stands one.out
kill -s TERM $one
until_there stands three.out
kill -s TERM $three
until_there 'has not ended' three.err
kill -s INT $three
kill -s TERM $three
status=0
wait $three || status=$?
echo "three signals: $status, $(xargs <three.out)"
said() { sed -n 's/^spile: guest: \(the virtual machine has\|nothing came\)/\1/p; s/^error\[E0500\]: //p' $1; }
said three.err
status=0
wait $one || status=$?
echo "one: $status, $(xargs <one.out)"
said one.err
echo "machines left: $(ls -l /proc/[0-9]*/cwd 2>/dev/null | grep -c " $PWD/tmp")"
