# Shows: the root part handles anything that is sent over its channel: users in no group have no root part; a user part that stops
# while it allocates its buffers delays no loader but its own user's; it removes only its own caller's module; requests beyond a user's
# rank are refused; thousands of random messages are answered, and leave nothing behind.
# script: ticks ticks.stp
# script: other ticks.stp
# limit: 200
# stdout: ^parts of no: suid$
# stdout: ^parts of usr: spile-guard spile-root suid$
# stdout: ^beyond the rank: 3 4 .*spile, which root puts there.*, 3 7 .*No such file.*, 3 7 .*not permitted.*, 3 4 .*ending sessions: only.*$
# stdout: ^the session of another user stays: 3 4, 2, 0$
# stdout: ^the lock is free: root 0, two 0, its own user after ten seconds: 4 .*USER_MEMORY
# stdout: ^at random: 3000 of 3000 answered: done, refused or called$
# stdout: ^nothing is left$

approve ./*.ko
printf 'spileusr:x:601:usr,two\n' >>/etc/group
add_users usr:5001 two:5003 no:5004
make_suid
mkdir -p /tmp/open && chmod 777 /tmp/open
cd /tmp/open
as() { user=$1; shift; su "$user" -c "$*"; }
status() { s=0; as "$@" >/tmp/out 2>/tmp/err || s=$?; echo $s; }
parts() { echo $(cat /proc/[0-9]*/status 2>/dev/null | sed -n 's/^Name:[[:space:]]*\(suid\|spile-.*\)$/\1/p' | sort); }
none() {
	for tenth in $(seq $((100 * PATIENCE))); do [ -n "$(parts)" ] || return 0; pause 0.1; done
	echo "still there: $(parts)"
	return 1
}
unloaded() {
	for tenth in $(seq $((150 * PATIENCE))); do loaded "$1" || return 0; pause 0.1; done
	gone "$1"
}
# waiting USER: a user part that waits for the reader of its help, before its first request.
mkfifo full
exec 8<>full
head -c 65536 /dev/zero >&8
waiting() {
	su "$1" -c 'exec suid --help' >&8 &
	user_part=$!
	for tenth in $(seq $((100 * PATIENCE))); do
		! grep -q pipe_write "/proc/$(named suid)/stack" 2>/dev/null || return 0
		pause 0.1
	done
	echo "it does not wait"
	return 1
}
ends() { kill -s KILL "$(named suid)"; wait $user_part 2>/dev/null || true; none; }

for user in no usr; do
	waiting $user
	echo "parts of $user: $(parts)"
	ends
done

waiting usr
refused() { line "$(named suid)" "$@" | tail -n 1 | sed 's/\.*$//'; }
echo "beyond the rank: $(refused 2+=x), $(refused 3), $(refused 12+), $(refused '11=*')"
ends

su two -c 'exec sleep 1000' &
present=$!
waiting usr
line "$(named suid)" 1=ticks 3 >answers
grep -q '^2 ' answers && loaded ticks
spilerun -d ticks
[ "$(status two suid -L ticks)" = 0 ]
# -d without the checks of the user part, and the end of a session that the user part has started under that name.
removed="$(line "$(named suid)" 11=ticks | cut -d' ' -f1,2), $(line "$(named suid)" 5 | cut -d' ' -f1)"
loaded ticks
kill -s KILL "$(named suid)"
for tenth in $(seq $((100 * PATIENCE))); do [ -n "$(named spile-root)" ] || break; pause 0.1; done
loaded ticks
echo "the session of another user stays: $removed, $(status two suid -d ticks)"
gone ticks
none

waiting usr
# It keeps sending requests, and never allocates.
line "$(named suid)" keep 1=ticks 3 sleep=4 8=ticks sleep=4 8=ticks sleep=4 8=ticks sleep=4 8=ticks sleep=4 8=ticks sleep=4 8=ticks >/dev/null &
asking=$!
for tenth in $(seq $((100 * PATIENCE))); do [ ! -c /dev/spile-ticks ] || break; pause 0.1; done
by_root=$(soon 5 spilerun "$place/other.ko" -T 0.1)
by_two=$(soon 5 su two -c 'suid other -T 0.1')
begun=$(cut -d. -f1 /proc/uptime)
own="$(status usr suid other -T 0.1) $(cat /tmp/err)"
[ $(($(cut -d. -f1 /proc/uptime) - begun)) -ge 9 ]
echo "the lock is free: root $by_root, two $by_two, its own user after ten seconds: $own"
kill $asking 2>/dev/null || true
ends
unloaded ticks
gone other
kill $present

waiting usr
echo "at random: $(line "$(named suid)" random=5642,3000)"
kill -s KILL "$(named suid)"
wait $user_part 2>/dev/null || true
unloaded ticks
unloaded other
none
echo nothing is left
