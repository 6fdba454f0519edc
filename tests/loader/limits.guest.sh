# Shows: sessions of users other than root are limited in memory and number, by default and by /etc/spile/limits; users are
# refused if that file is wrong; sessions end when their user has no process any more, unless KEEP is set.
# script: ticks ticks.stp
# script: returns returns.stp
# limit: 180
# stdout: ^of the memory: a sixteenth$
# stdout: ^more: 4 .*USER_MEMORY.*/etc/spile/limits
# stdout: ^root has no limit: 0$
# stdout: ^calls in flight: 0, then 4$
# stdout: ^the kernel log is not filled$
# stdout: ^number: 4 .*USER_SESSIONS
# stdout: ^processes: 64 spilerun of usr, the next: 4 ERROR: 64 spilerun of yours .*USER_SESSIONS.*, two: [0-9]*$
# stdout: ^processes: 0 when they are gone$
# stdout: ^modules before they are loaded: 4 .*would take more than 100 MB .USER_MEMORY.*, when they are gone: 3 .*has changed
# stdout: ^wrong: 2 .*line 1: no such key
# stdout: ^a file of others: 2$
# stdout: ^gone with its user$
# stdout: ^kept$

mkdir -p /etc/spile
approve ticks.ko returns.ko
printf 'spileusr:x:601:usr\n' >>/etc/group
add_users usr:5001
make_suid
cd /tmp
status() { s=0; su usr -c "$*" >/tmp/out 2>/tmp/err || s=$?; echo $s; }
sessions() { ls /sys/class/misc | sed -n 's/^spile-//p'; }
end_all() { for name in $(sessions); do spilerun -d "$name"; done; }
# Memory of all users' sessions, in KB.
memory() {
	for name in $(sessions); do spilerun status "$name"; done | sed -n 's/.*skipped, \([0-9]*\) KB$/\1/p' | awk '{ sum += $1 } END { print sum + 0 }'
}

su usr -c 'sleep 1000' &
user=$!
most=$(($(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo) / 16))
for turn in 1 2 3 4 5 6 7 8; do last=$(status suid -R -L -s 4095 ticks); done
[ "$(memory)" -le "$most" ] && [ "$(memory)" -gt $((most / 4)) ] && echo 'of the memory: a sixteenth'
# The remaining memory is less than a session needs.
echo 'USER_MEMORY=1M' >/etc/spile/limits
echo "more: $(status suid -R -L ticks) $(cat /tmp/err)"
end_all
status=0
spilerun -L "$place/ticks.ko" 2>/dev/null || status=$?
echo "root has no limit: $status"
end_all
# The kernel allocates what return probes need for calls in flight: 2 MB for each of these sessions.
echo 'USER_MEMORY=5M' >/etc/spile/limits
echo "calls in flight: $(status suid -R -L -s 1 returns), then $(status suid -R -L -s 1 returns)"
# Each start is a module of its own: only the kernel can count its lines. Newer kernels let as many through as an interval had
# left when it began: the first start begins one.
echo 1 >/proc/sys/kernel/printk_ratelimit_burst
echo 1 >/proc/sys/kernel/printk_ratelimit
pause 1.5
status suid -R -L -s 1 returns >/dev/null
echo 600 >/proc/sys/kernel/printk_ratelimit
for turn in 1 2 3; do status suid -R -L -s 1 returns >/dev/null; done
lines=$(dmesg | grep -c 'refused: its calls in flight')
[ "$lines" -ge 1 ] && [ "$lines" -le 2 ] && echo 'the kernel log is not filled'
echo 5 >/proc/sys/kernel/printk_ratelimit
echo 10 >/proc/sys/kernel/printk_ratelimit_burst
end_all
echo 'USER_SESSIONS=2' >/etc/spile/limits
[ "$(status suid -R -L ticks) $(status suid -R -L ticks)" = '0 0' ]
echo "number: $(status suid -R -L ticks) $(cat /tmp/err)"
end_all
# Those that waited for the user of an ended session look every five seconds whether it still exists.
for tenth in $(seq $((100 * PATIENCE))); do [ -n "$(named spile-attend)" ] || break; pause 0.1; done
# Loaders that cannot write their messages each have processes with root's rights. (Those of refused ones end.)
# A wrong file lets nobody have more.
echo 'USER_SESSIONS=few' >/etc/spile/limits
printf 'spilesys:x:602:two\n' >>/etc/group
add_users two:5002
mkfifo full
chmod 666 full
exec 8<>full
head -c 65536 /dev/zero >&8
su usr -c 'for number in $(seq 70); do suid status ticks >full 2>&1 & done; exec sleep 1000' &
many=$!
# Refused ones have one for a moment, too, until all have begun: it is the number that stays.
same=0
for tenth in $(seq $((300 * PATIENCE))); do
	[ "$(named spile-guard | wc -w)" = 64 ] && same=$((same + 1)) || same=0
	[ $same -lt 10 ] || break
	pause 0.1
done
echo "processes: $(named spile-guard | wc -w) spilerun of usr, the next: $(status suid status ticks) $(cat /tmp/err), two: $(su two -c 'suid status ticks' >/dev/null 2>&1 || echo $?)"
su usr -c 'kill -s KILL -1' || true
wait $many || true
for tenth in $(seq $((100 * PATIENCE))); do [ -n "$(named spile-guard)" ] || break; pause 0.1; done
echo "processes: $(named spile-guard | wc -w) when they are gone"
# Loaders that are stopped before their module is loaded. The root part has read it, and is not in the cgroup of the user. (A module that
# has become longer is refused by the user part.)
echo 'USER_MEMORY=100M' >/etc/spile/limits
cp "$place/ticks.ko" kept.ko
truncate -s 40M "$place/ticks.ko"
for number in 1 2; do
	strace -u usr -o trace$number -e trace=sendmsg -e inject=sendmsg:signal=STOP:when=1 /usr/bin/suid ticks -T 0.1 >/dev/null 2>&1 &
	stopped="${stopped:-} $!"
	wait_for trace$number 'stopped by SIGSTOP' 30
done
held="$(status suid ticks -T 0.1) $(cat /tmp/err)"
kill -s KILL $(named suid)
wait $stopped || true
for tenth in $(seq $((100 * PATIENCE))); do [ -n "$(named spile-guard)" ] || break; pause 0.1; done
echo "modules before they are loaded: $held, when they are gone: $(status suid ticks -T 0.1) $(cat /tmp/err)"
cat kept.ko >"$place/ticks.ko"
su usr -c 'sleep 1000' &
user=$!
echo 'SESSIONS=2' >/etc/spile/limits
echo "wrong: $(status suid ticks) $(cat /tmp/err)"
chown 5001 /etc/spile/limits
echo "a file of others: $(status suid ticks)"
rm /etc/spile/limits

[ "$(status suid -L ticks)" = 0 ]
sleep 12
loaded ticks
# The shell started by su, and its child.
for process in /proc/[0-9]*; do
	! grep -q '^Uid:.5001' "$process/status" 2>/dev/null || kill -KILL "${process#/proc/}"
done
wait $user || true
for tenth in $(seq $((400 * PATIENCE))); do loaded ticks || break; pause 0.1; done
gone ticks
echo gone with its user
echo 'KEEP=spileusr' >/etc/spile/limits
[ "$(status suid -L ticks)" = 0 ]
sleep 20
loaded ticks
spilerun -d ticks
gone ticks
echo kept
