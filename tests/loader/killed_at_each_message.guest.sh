# Shows: a set-uid spilerun is killed at the messages between its two parts, while it starts, leaves a session,
# attaches, asks for a status, and ends a session: the user part as it sends a request, the root part as it sends an answer. No
# module, process or file is left. A user part that is stopped there delays nobody else, and when it is killed nothing is left either.
# script: ticks ticks.stp
# script: other ticks.stp
# limit: 300
# stdout: ^start: user part killed 3 of 3, root part 4 of 4, nothing left$
# stdout: ^leave: user part killed 1 of 1, root part 1 of 1, nothing left$
# stdout: ^attach: user part killed 2 of 2, root part 2 of 2, nothing left$
# stdout: ^status: user part killed 1 of 1, root part 2 of 2, nothing left$
# stdout: ^end: user part killed 1 of 1, root part 1 of 1, nothing left$
# stdout: ^stopped: others meanwhile 0 0 0 0, -d: 6 9, then gone$
# stdout: ^files: as before$

approve ./*.ko
printf 'spileusr:x:601:usr,two\n' >>/etc/group
add_users usr:5001 two:5003
make_suid
enter_open
# A session that was left stays, without a process that waits for its user to go.
mkdir -p /etc/spile
echo KEEP=spileusr >/etc/spile/limits
files() { ls -a /dev /run/spile /proc /proc/systemtap /sys/class/misc /tmp 2>/dev/null | grep -v ':$' | grep -i 'spile\|ticks' || true; }
nothing() {
	unloaded ticks
	for tenth in $(seq $((150 * PATIENCE))); do
		any_of_suid || return 0
		pause 0.1
	done
	cat /proc/[0-9]*/status | grep -E '^Name:.(suid|spile)'
	return 1
}
# step SIGNAL NUMBER WHOM COMMAND...: the command of a user, with a signal at message NUMBER of the first process (user), or of each
# process (all). The root part sends READY first and then an answer to each request, so it is always the one that is killed with `all`.
step() {
	signal=$1 number=$2 whom=$3 s=0
	shift 3
	[ $whom = user ] && traced= || traced=-f
	timeout -s KILL 60 strace $traced -u usr -o trace -e trace=sendmsg -e inject=sendmsg:signal="$signal":when="$number" /usr/bin/suid "$@" \
		>/dev/null 2>err || s=$?
	! grep -aq panicked err || { cat err; return 1; }
}
# killed PREPARE CLEAR USER ROOT COMMAND...: kills the parts at the messages of these numbers; before each the shell command PREPARE is
# run, and after it CLEAR.
killed() {
	prepare=$1 clear=$2 of_user=$3 of_root=$4 user=0 root=0
	shift 4
	for number in $of_user; do
		eval "$prepare"
		step KILL "$number" user "$@"
		[ $s != 137 ] || user=$((user + 1))
		eval "$clear"
		nothing
	done
	for number in $of_root; do
		eval "$prepare"
		step KILL "$number" all "$@"
		! grep -q 'killed by SIGKILL' trace || root=$((root + 1))
		eval "$clear"
		nothing
	done
	echo "user part killed $user of $(echo $of_user | wc -w), root part $root of $(echo $of_root | wc -w), nothing left"
}
left() { [ "$(status usr suid -L ticks)" = 0 ] || { cat /tmp/err; return 1; }; }
ended() { spilerun -d ticks 2>/dev/null || ! loaded ticks; }

before=$(files)
echo "start: $(killed : : '1 2 3' '1 2 3 4' ticks -T 0.1)"
# Killed as it leaves, the session was already told to stay.
echo "leave: $(killed : ended 3 3 -L ticks)"
echo "attach: $(killed left ended '1 2' '2 3' -A ticks -T 0.1)"
echo "status: $(killed left ended 1 '2 3' status ticks)"
echo "end: $(killed left ended 1 2 -d ticks)"

# The second request is to load the module, the third to remove it: the module is in use, or gone.
others= ends=
for number in 2 3; do
	step STOP $number user ticks -T 0.5 &
	stepping=$!
	wait_for trace 'stopped by SIGSTOP' 30
	others="$others $(soon 10 spilerun "$place/other.ko" -T 0.1) $(soon 10 su two -c 'suid other -T 0.1')"
	ended=0
	spilerun -d ticks 2>/dev/null || ended=$?
	ends="$ends $ended"
	kill -s KILL $(named suid)
	wait $stepping || true
	nothing
	rm trace
done
echo "stopped: others meanwhile$others, -d:$ends, then gone"
[ "$(files)" = "$before" ] && echo "files: as before" || files
