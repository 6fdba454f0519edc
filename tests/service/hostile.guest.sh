# Shows: disturbances of a running service: its configuration damaged, its module's file replaced or removed, /etc full or
# read-only, a second instance, -d by hand, an unprivileged user, its socket removed, a stopped loader during a flood, a closed
# output, rmmod -f, a changed clock, a reused PID. Each is reported with its status, missing output is counted, and nothing is
# left behind.
# script: ticks ticks.stp
# script: flood flood.stp
# script: lu_5642 -g examples/lu_5642/lu_5642.stp
# modules: lustre
# limit: 200
# stdout: ^only root writes its files$
# stdout: ^a second one: 6 6, -d: 6$
# stdout: ^another user: 4 .*you may not open its device
# stdout: ^the socket is made again$
# stdout: ^runs on without its files$
# stdout: ^damaged configuration: 2 .*line 1: no such key
# stdout: ^attached without a file, with the old configuration$
# stdout: ^closed output: 8 .*nobody reads the output any more; the session continues without a reader .spilerun -A ticks.
# stdout: ^between two loaders: .*no loader reads it: systemctl start spile@ticks.service attaches to it
# stdout: ^none missing$
# stdout: ^killed while its output was blocked: begins anew$
# stdout: ^killed by its manager: core-dump: stays, timeout: ends,$
# stdout: ^full: 8 No space left on device.*, read-only: 8 Read-only file system.*, as before$
# stdout: ^stopped under a flood: all counted$
# stdout: ^removed by force: (1 .*removed by force .rmmod -f.: the session ends|left out)
# stdout: ^expired: Input/output error, set back: Input/output error$
# stdout: ^the process: Resource temporarily unavailable$
# stdout: ^another of its number: Input/output error$
# stdout: ^no such process: 2 .*pid=99999: there is no such process
# absent: Oops|BUG:|general protection|use-after-free

mkdir -p bin
printf '#!/bin/sh\n' >bin/systemctl
chmod +x bin/systemctl
mkdir -p /run/systemd/system
export PATH=$PWD/bin:$PATH
# status COMMAND...: sets $status; its output goes to output.
status() { status=0; "$@" >output 2>&1 || status=$?; }
# unloaded NAME: waits until it is.
unloaded() {
	for tenth in $(seq 200); do loaded "$1" || return 0; pause 0.1; done
	gone "$1"
}
begins() {
	spilerun service run ticks >>"$1" 2>err &
	loader=$!
	armed ticks
}
ends() { status=0; kill -s TERM $loader; wait $loader || status=$?; gone "$1"; }

(umask 0; spilerun service install ticks ticks.ko >/dev/null 2>&1)
conf=/etc/spile/ticks.conf
place=/lib/modules/$(uname -r)/spile/ticks.ko
ls -ld ${place%/*} $place $conf | cut -c5-10 | grep w || echo only root writes its files
echo "METRICS=unix:$PWD/socket" >$conf
begins out.1
status spilerun service run ticks
second=$status
status spilerun ticks.ko
second="$second $status"
status spilerun -d ticks
echo "a second one: $second, -d: $status"
status su user -c 'spilerun status ticks'
echo "another user: $status $(cat output)"
rm socket
for tenth in $(seq 600); do [ ! -S socket ] || break; pause 0.1; done
[ -S socket ]
echo the socket is made again

cp $conf conf.good
echo COLOUR=red >$conf
cp flood.ko $place
wait_for out.1 "tick $(($(grep -c tick out.1) + 20))"
rm $place
kill -0 $loader
echo runs on without its files
kill -s KILL $loader
wait $loader || true
status spilerun service run ticks
echo "damaged configuration: $status $(cat output)"
cp conf.good $conf
mkfifo pipe
cat pipe >out.2 &
reader=$!
spilerun service run ticks >pipe 2>err &
loader=$!
wait_for out.2 tick
echo attached without a file, with the old configuration
kill $reader
status=0
wait $loader || status=$?
echo "closed output: $status $(grep ERROR err)"
status spilerun service status ticks
echo "between two loaders: $(grep WARNING output)"
sleep 0.5
begins out.3
wait_for out.3 "tick"
ends ticks
# The pipe's reader was killed: its partial line and the pipe's contents are not in its file.
sed -n 's/^tick \([0-9]*\) x*$/\1/p' out.1 out.2 out.3 | sort -n -u >numbers
last=$(tail -n 1 numbers)
held=$((last - $(wc -l <numbers)))
[ "$held" -lt 700 ] && [ "$(sed -n 's/^tick \([0-9]*\) x*$/\1/p' out.3 | sort -n -u | wc -l)" = $((last - $(sed -n 's/^tick \([0-9]*\) x*$/\1/p' out.3 | head -n 1) + 1)) ]
echo none missing

# Killed when it was stopped and could not write: the rest is read, and the service's own session begins.
cp ticks.ko $place
mkfifo blocked
sleep 1000 <blocked &
reader=$!
spilerun service run ticks >blocked 2>err &
loader=$!
armed ticks
# The pipe takes the output of six seconds.
sleep 9
kill -s TERM $loader
for second in $(seq 15); do spilerun status ticks 2>/dev/null | grep -q ': running' || break; pause 1; done
kill -s KILL $loader
wait $loader || true
begins out.5
wait_for out.5 ready
wait_for out.5 'tick 10 '
ends ticks
count=$(grep -c '^tick 10 ' out.5 || true) first=$(sed -n 's/^tick \([0-9]*\) x*$/\1/p' out.5 | head -n 1)
[ "$count" = 1 ] && [ "$first" -gt 10 ] || { echo "tick 10 $count times, after $first"; exit 1; }
kill $reader
echo killed while its output was blocked: begins anew

# The manager kills a service that does not end in time when it is stopped; what it runs then ends the session too. After a crash the
# session stays, for the next start.
command=$(sed -n 's/^ExecStopPost=-//p' /etc/systemd/system/spile@.service | sed 's/%i/ticks/g')
[ -n "$command" ]
after=
for result in core-dump timeout; do
	begins out.6
	kill -s KILL $loader
	wait $loader || true
	SERVICE_RESULT=$result $command >output 2>&1 || true
	loaded ticks && after="$after $result: stays," || after="$after $result: ends,"
done
echo "killed by its manager:$after"

cp ticks.ko $place.good
mkdir -p kept && cp /etc/spile/* kept
mount -t tmpfs -o size=4k none /etc/spile
head -c 4096 /dev/zero >/etc/spile/filler
status spilerun service install ticks ticks.ko
full="$status $(grep ERROR output | sed 's/.*: //')"
mount -o remount,ro /etc/spile
rm -f $place
status spilerun service install ticks ticks.ko
reason=$(grep ERROR output | sed 's/.*: //')
[ "$(ls /etc/spile)" = filler ]
umount /etc/spile
cmp conf.good $conf
echo "full: $full, read-only: $status $reason, as before"
mv $place.good $place

spilerun flood.ko -s 1 -o flooded 2>err &
loader=$!
armed flood
kill -s STOP $loader
# More than two megabytes.
handled flood 200
kill -s CONT $loader
wait_for flooded line
kill -s INT $loader
wait $loader
gone flood
lost=$(sed -n 's/.*WARNING: \([0-9]*\) records were lost (.*/\1/p' err | tail -n 1)
written=$(sed -n 's/^written //p' flooded)
[ $(($(grep -c '^line [0-9]* x*$' flooded) + lost)) = "$written" ] && [ "$lost" -gt 0 ]
echo stopped under a flood: all counted

# This would disable lockdep for all later tests.
if [ -e /proc/lockdep ]; then
	echo 'removed by force: left out'
else
	begins out.4
	status=0
	rmmod -f ticks
	wait $loader || status=$?
	echo "removed by force: $status $(grep ERROR err)"
	unloaded ticks
fi
spilerun service remove ticks

failure() { as_user 'getfattr -n user.job /mnt/file' 2>&1 | grep -o 'Input/output error\|Resource temporarily unavailable'; }
mount_lustre
fail_with 5
start_armed lu_5642 'LU-5642 stap started' --expires 2h
armed lu_5642
now=$(date +%s)
date -s "@$((now + 10000))" >/dev/null
expired=$(failure)
date -s "@$now" >/dev/null
echo "expired: $expired, set back: $(failure)"
stop

su user -c 'while [ ! -e /tmp/go ]; do sleep 0.1; done; exec getfattr -n user.job /mnt/file' >first 2>&1 &
process=$!
start_armed lu_5642 'LU-5642 stap started' --only pid=$process
armed lu_5642
touch /tmp/go
wait $process || true
echo "the process: $(sed 's/.*: //' first)"
for turn in $(seq 100); do
	echo $((process - 1)) >/proc/sys/kernel/ns_last_pid
	su user -c 'exec getfattr -n user.job /mnt/file' >second 2>&1 &
	another=$!
	wait $another || true
	[ $another != $process ] || break
done
[ $another = $process ]
echo "another of its number: $(sed 's/.*: //' second)"
stop
status spilerun lu_5642.ko --only pid=99999
echo "no such process: $status $(cat output)"
gone lu_5642
