# Shows: a user puts a set-uid spilerun into a cgroup of his own, and kills or freezes it there at any moment of the start, or leaves
# it no memory or no processes; a full or missing /run; extreme umasks; a module that is replaced while it is read. Each caller has
# a status and a message, nobody else waits, and nothing is left behind.
# script: ticks ticks.stp
# script: other ticks.stp
# limit: 400
# memory_cgroups: yes
# stdout: ^killed with its cgroup: 12 times, nothing left$
# stdout: ^frozen: others meanwhile( 0 0){3}, nothing left$
# stdout: ^no memory: [0-9]+ callers, each with a status$
# stdout: ^no processes: [0-9]+ callers, each with a status$
# stdout: ^a full /run: 0 0, without one: 0 0$
# stdout: ^masks: 0 666, 0 0, 0 700$
# stdout: ^replaced while it is read: 12 starts, [0-9]+ ran$

approve ./*.ko
printf 'spileusr:x:601:usr,two\nspiledev:x:603:dev\n' >>/etc/group
add_users usr:5001 two:5003 dev:5005
make_suid
enter_open
# A test before this one may have mounted it.
[ -f /sys/fs/cgroup/cgroup.procs ] || mount -t cgroup2 none /sys/fs/cgroup
echo '+memory +pids +cpu' >/sys/fs/cgroup/cgroup.subtree_control
cage=/sys/fs/cgroup/cage
# caged COMMAND...: runs it as the user in a new cgroup that is his.
fresh() { mkdir $cage; chown -R usr $cage; }
caged() { sh -c 'echo 0 >/sys/fs/cgroup/cage/cgroup.procs; exec su usr -c "$*"' sh "$@"; }
kill_caged() {
	if [ -e $cage/cgroup.kill ]; then
		su usr -c "echo 1 >$cage/cgroup.kill"
	else
		# Before 5.14: a user can kill the processes that are his own.
		su usr -c "kill -KILL $(tr '\n' ' ' <$cage/cgroup.procs); echo 0 >$cage/cgroup.freeze" || true
	fi
}
clear() {
	for tenth in $(seq 100); do ! rmdir $cage 2>/dev/null || return 0; pause 0.1; done
	cat $cage/cgroup.procs
	return 1
}

for turn in $(seq 12); do
	fresh
	caged 'exec suid ticks -o /dev/null' >/dev/null 2>&1 &
	session=$!
	a_while 900
	kill_caged
	wait $session || true
	nothing_of_suid ticks
	clear
done
echo 'killed with its cgroup: 12 times, nothing left'

statuses=
for turn in 1 2 3; do
	fresh
	caged 'exec suid ticks -o /dev/null' >/dev/null 2>&1 &
	session=$!
	a_while 900
	su usr -c "echo 1 >$cage/cgroup.freeze"
	statuses="$statuses $(soon 10 spilerun "$place/other.ko" -T 0.1) $(soon 10 su two -c 'suid other -T 0.1')"
	kill_caged
	wait $session || true
	nothing_of_suid ticks
	clear
done
echo "frozen: others meanwhile$statuses, nothing left"

# short_of FILE VALUE [OPTIONS]: a start in a cgroup with that limit.
short_of() {
	fresh
	echo "$2" >"$cage/$1"
	s=0
	caged "exec timeout -s KILL 60 suid ticks -T 0.1 ${3:-}" >/tmp/out 2>/tmp/err || s=$?
	judge_start "$1 $2"
	nothing_of_suid ticks
	clear
	count=$((count + 1))
}
count=0
for most in 256K 1M 2M 3M 4M 6M 8M 16M; do short_of memory.max $most; done
# What the kernel prints about processes that it has killed has a stack.
! dmesg | grep -E 'BUG|WARNING' || exit 1
dmesg -c >/dev/null
echo "no memory: $count callers, each with a status"
count=0
for most in 2 3 4 5 6; do short_of pids.max $most '-c true'; done
echo "no processes: $count callers, each with a status"
umount /sys/fs/cgroup

mkdir -p /run
mount -t tmpfs -o size=4k,nr_inodes=1 none /run
full="$(status usr suid ticks -T 0.1) $(status usr suid -L ticks)"
spilerun -d ticks 2>/dev/null || true
nothing_of_suid ticks
umount /run
mv /run /run.away
without="$(status usr suid ticks -T 0.1) $(status usr suid -L ticks)"
spilerun -d ticks 2>/dev/null || true
nothing_of_suid ticks
rm -rf /run
mv /run.away /run
echo "a full /run: $full, without one: $without"

rm -rf /run/spile
s="$(status usr 'umask 0; suid ticks -T 0.1 -o open') $(stat -c %a open), $(status usr 'umask 777; suid ticks -T 0.1 -o closed') $(stat -c %a closed)"
(umask 0; su usr -c 'umask 0; suid -L ticks')
# A process in the background makes it.
for tenth in $(seq $((100 * PATIENCE))); do [ ! -d /run/spile ] || break; pause 0.1; done
echo "masks: $s, 0 $(stat -c %a /run/spile)"
spilerun -d ticks
nothing_of_suid ticks

cp "$here/ticks.ko" whole.ko
chmod 644 whole.ko
su dev -c 'while [ ! -e enough ]; do cat whole.ko >race.ko; : >race.ko; head -c 100000 whole.ko >race.ko; head -c 100000 /dev/urandom >>race.ko; cat whole.ko >new.ko; mv new.ko race.ko; done' &
racing=$!
sleep 0.5
ran=0
for turn in $(seq 12); do
	s=$(status dev 'timeout -s KILL 60 suid ./race.ko -T 0.1')
	judge_start race
	[ $s != 0 ] || ran=$((ran + 1))
done
touch enough
wait $racing
nothing_of_suid ticks
echo "replaced while it is read: 12 starts, $ran ran"
