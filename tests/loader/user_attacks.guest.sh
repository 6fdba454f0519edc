# Shows: attacks on a set-uid spilerun by a user who does not know its code: all kinds of limits, closed streams, the
# lowest priorities, no new privileges, odd files as modules, outputs whose directory is exchanged meanwhile, kill -1 at
# any moment, sessions that are ended while they start, dozens of simultaneous starts. Each ends with a status and a
# message, no other user has to wait, and nothing is left behind.
# script: ticks ticks.stp
# script: other ticks.stp
# limit: 400
# stdout: ^limits: [0-9]+ callers, each with a status$
# stdout: ^limits too low: [1-9][0-9]* of [0-9]+ with a reason$
# stdout: ^streams:( [08]){7}$
# stdout: ^lowly: 0, noprivs: 4$
# stdout: ^odd files: 17 refused$
# stdout: ^without a rank: 6 refused$
# stdout: ^outputs: root's files are as before$
# stdout: ^killed by its user: 6 times, nothing left$
# stdout: ^stopped by its user: others meanwhile 0 0$
# stdout: ^ended while it starts: 4 times, nothing left$
# stdout: ^at once: 50 callers, [1-9][0-9]* ran, nothing left$

approve ./*.ko
printf 'spileusr:x:601:usr,two\nspilesys:x:602:sys\nspiledev:x:603:dev\n' >>/etc/group
add_users usr:5001 two:5003 sys:5002 dev:5005 no:5004
make_suid
enter_open

# The kernel and the dynamic loader end a program that cannot be started (127, 137, 139), and one that exceeds its
# CPU time (137, 152).
count=0 few=0 explained=0
for way in nofile=0 nofile=4 nofile=6 nofile=8 nofile=12 fsize=0 fsize=100 as=8000000 as=20000000 data=0 stack=20000 stack=200000 cpu=0 cpu=1 \
	nproc=0 memlock=0 sigpending=0 rss=0 nice=0 rtprio=0 rttime=0; do
	s=$(status usr "timeout -s KILL 60 caller $way /usr/bin/suid ticks -T 0.1")
	judge_start $way
	count=$((count + 1))
	case $s in
	[1-9]) few=$((few + 1)); ! [ -s /tmp/err ] || explained=$((explained + 1)) ;;
	esac
	echo "$way: $s $(head -n 1 /tmp/err)" >&2
done
nothing_of_suid ticks
echo "limits: $count callers, each with a status"
echo "limits too low: $explained of $few with a reason"
statuses=
for which in 1 2 3 4 5 6 7; do
	s=$(status usr "caller closed=$which /usr/bin/suid ticks -T 0.1")
	judge_start closed=$which
	statuses="$statuses $s"
done
nothing_of_suid ticks
echo "streams:$statuses"
echo "lowly: $(status usr 'caller lowly /usr/bin/suid ticks -T 0.1'), noprivs: $(status usr 'caller noprivs /usr/bin/suid ticks -T 0.1')"

# refused NAME: the last command ended with a status of spilerun, $s.
refused() {
	judge_start "$1"
	case $s in
	[1-9]) count=$((count + 1)) ;;
	*) echo "$1: $s $(cat /tmp/err)" ;;
	esac
}

mkfifo silent trickle
chmod 666 silent trickle
exec 8<>silent
(exec 9>trickle; while sleep 0.2; do head -c 100 /dev/zero >&9 || exit 0; done) 2>/dev/null &
trickles=$!
truncate -s 4398046511104 sparse.ko
: >empty.ko
mkdir directory.ko
ln -s loop.ko loop.ko
cp "$here/ticks.ko" whole.ko
chmod 644 whole.ko
chmod 666 sparse.ko empty.ko
long=$(head -c 5000 /dev/zero | tr '\0' a)
count=0
for file in ./silent ./trickle ./sparse.ko ./empty.ko ./directory.ko ./loop.ko /dev/zero /dev/tty /dev/stdin /proc/self/mem /proc/self/maps \
	/proc/self/exe /proc/self/fd/8 /proc/self/root "./$long" "$(printf './a\033[2Jb')" ./whole.ko/; do
	s=$(status dev "timeout -s KILL 60 suid '$file' -T 0.1 </dev/null")
	refused "$file"
done
nothing_of_suid ticks
echo "odd files: $count refused"
count=0
for words in ticks ./whole.ko '-d *' '-A ticks' 'status ticks' 'service list'; do
	s=$(status no "suid $words")
	refused "$words"
done
kill $trickles 2>/dev/null || true
exec 8>&-
nothing_of_suid ticks
echo "without a rank: $count refused"

# The directory of an output alternately belongs to the user and to root.
mkdir theirs
chmod 777 theirs
before=$(ls /root)
su usr -c 'while [ ! -e enough ]; do ln -sfn /root race; ln -sfn theirs race; done' &
racing=$!
for turn in 1 2 3; do
	s=$(status usr 'suid ticks -S 1 -T 0.3 -o race/out')
	judge_start race
done
touch enough
wait $racing
nothing_of_suid ticks
[ "$(ls /root)" = "$before" ] && echo "outputs: root's files are as before"

for turn in $(seq 6); do
	su usr -c 'exec suid ticks -o /dev/null -c "sleep 1000"' >/dev/null 2>&1 &
	session=$!
	a_while 1200
	su usr -c 'kill -s KILL -1' 2>/dev/null || true
	wait $session || true
	nothing_of_suid ticks
done
echo 'killed by its user: 6 times, nothing left'
for turn in 1 2; do
	su usr -c 'exec suid ticks -o /dev/null' >/dev/null 2>&1 &
	session=$!
	a_while 800
	su usr -c 'kill -s STOP -1' 2>/dev/null || true
	others="$(soon 10 spilerun "$place/other.ko" -T 0.1) $(soon 10 su two -c 'suid other -T 0.1')"
	[ "$others" = '0 0' ] || { echo "others: $others"; exit 1; }
	su usr -c 'kill -s KILL -1' 2>/dev/null || true
	wait $session || true
	nothing_of_suid ticks
done
echo "stopped by its user: others meanwhile $others"
for turn in 1 2 3 4; do
	su usr -c 'exec suid ticks -o /dev/null' >/dev/null 2>/tmp/err &
	session=$!
	a_while 800
	case $((turn % 2)) in
	0) su sys -c 'suid -d ticks' >/dev/null 2>&1 || true ;;
	*) spilerun -d ticks >/dev/null 2>&1 || true ;;
	esac
	a_while 100
	kill -s INT $(named suid) 2>/dev/null || true
	s=0
	wait $session || s=$?
	[ $s = 130 ] || judge_start "ended while it starts"
	nothing_of_suid ticks
done
echo 'ended while it starts: 4 times, nothing left'

mkdir all
chmod 777 all
for number in $(seq 50); do
	case $((number % 2)) in
	0) who=usr ;;
	*) who=two ;;
	esac
	su $who -c "s=0; timeout -s KILL 200 suid ticks -T 0.2 >/dev/null 2>all/err.$number || s=\$?; echo \$s >all/$number" &
	starts="${starts:-} $!"
done
wait $starts
ran=0
for number in $(seq 50); do
	s=$(cat all/$number)
	cp all/err.$number /tmp/err
	judge_start "at once"
	case $s in
	0) ran=$((ran + 1)) ;;
	4 | 6) ;;
	*) echo "at once: $s $(cat /tmp/err)" ;;
	esac
done
nothing_of_suid ticks
echo "at once: 50 callers, $ran ran, nothing left"
