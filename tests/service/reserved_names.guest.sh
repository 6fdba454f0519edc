# Shows: users cannot start a service's module, under its name or another, unless its configuration allows it; a service never
# attaches to a session that it did not start: it reports the owner, ends the session and its loader, and starts its own.
# script: ticks ticks.stp
# limit: 120
# stdout: ^users: 4 4 4: .*ticks is a service, which root starts .*START in /etc/spile/ticks.conf
# stdout: ^another file: 4$
# stdout: ^while dpkg unpacks: 4$
# stdout: ^granted: 0$
# stdout: ^detached: .*the name ticks is taken by a session that usr has started: it is ended
# stdout: ^its own: 1$
# stdout: ^attached again: 0$
# stdout: ^a loader, stopped: .*taken by a session that usr has started
# stdout: ^a loader: .*taken by a session that usr has started; it is asked to end, not its part with root's rights$
# stdout: ^in loops: the service began 4 times$
# stdout: ^by hand: .*taken by a session that root has started
# stdout: ^status: .*the name ticks is taken by a session that usr has started

mkdir -p bin
printf '#!/bin/sh\n' >bin/systemctl
chmod +x bin/systemctl
export PATH=$PWD/bin:$PATH
place=/lib/modules/$(uname -r)/spile
printf 'spileusr:x:601:usr\nspilesys:x:602:sys\n' >>/etc/group
add_users usr:5001 sys:5002
make_suid
status() { user=$1; shift; s=0; su "$user" -c "cd /tmp; $*" >/tmp/out 2>/tmp/err || s=$?; echo $s; }
# The service's loader is $loader.
begins() {
	rm -f out err
	spilerun service run ticks >out 2>err &
	loader=$!
	wait_for out tick 40 || cat err
}
ends() { kill -s TERM $loader; wait $loader || true; gone ticks; }
warned() { grep -m 1 WARNING err || true; }

spilerun service install ticks ticks.ko >/dev/null 2>&1
chmod 644 "$place"/*
echo "users: $(status usr suid ticks -T 0.2) $(status usr suid -R ticks -T 0.2) $(status sys suid ticks -T 0.2): $(cat /tmp/err)"
cp "$place/ticks.ko" "$place/other.ko"
echo "another file: $(status usr suid other -T 0.2)"
rm "$place/other.ko"
mv /etc/spile/ticks.conf /etc/spile/ticks.conf.dpkg-new
echo "while dpkg unpacks: $(status usr suid ticks -T 0.2)"
mv /etc/spile/ticks.conf.dpkg-new /etc/spile/ticks.conf
su usr -c 'exec sleep 1000' &
user=$!
echo 'START=spileusr' >>/etc/spile/ticks.conf
echo "granted: $(status usr suid -L ticks line=theirs)"
begins
echo "detached: $(warned)"
[ "$(grep -c theirs out)" = 0 ]
echo "its own: $(grep -c ready out)"
kill -KILL $loader
wait $loader || true
loaded ticks
begins
[ -z "$(warned | grep taken)" ] && echo "attached again: $(grep -c ready out)"
ends

su usr -c 'cd /tmp; exec suid --keep ticks -o theirs' >/dev/null 2>&1 &
wait_for /tmp/theirs tick
processes 5001 | xargs -r kill -s STOP
spilerun service status ticks >output 2>&1 || true
begins
echo "a loader, stopped: $(warned)"
[ "$(grep -c ready out)" = 1 ]
ends
rm -f /tmp/theirs
su usr -c 'cd /tmp; exec suid --keep ticks -o theirs' >/dev/null 2>ended &
wait_for /tmp/theirs tick
begins
! grep -q 'has been killed' ended && echo "a loader: $(warned | sed 's/started.*/started/'); it is asked to end, not its part with root's rights"
ends
rm -f /tmp/theirs
# Whenever the name is free, or about to be, one of them takes it.
su usr -c 'cd /tmp; for loop in 1 2 3; do (while [ ! -e enough ]; do suid ticks -o /dev/null || sleep 0.1; done) & done; wait' >/dev/null 2>&1 &
loops=$!
begun=0
for turn in 1 2 3 4; do
	for tenth in $(seq 200); do ! spilerun status ticks 2>/dev/null | grep -q ': running' || break; pause 0.1; done
	rm -f out
	spilerun service run ticks >out 2>err &
	loader=$!
	wait_for out tick 40 && begun=$((begun + 1)) || cat err
	kill -s TERM $loader
	wait $loader || true
done
touch /tmp/enough
kill -s TERM $(named suid) 2>/dev/null || true
wait $loops || true
nothing_of_suid ticks
echo "in loops: the service began $begun times"
spilerun -L "$place/ticks.ko" 2>/dev/null
begins
echo "by hand: $(warned)"
ends
echo "status: $(grep WARNING output)"
kill $user
