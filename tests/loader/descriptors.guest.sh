# Shows: no file name from the caller of a set-uid spilerun opens one of its descriptors. The processes with root's rights keep
# nothing of the caller's (directory, files, limits, priority, cgroup, groups), cannot be signalled by the caller, and work if the
# caller's cgroup is frozen; the caller cannot debug the session; the session's arrays and buffers are charged to the caller's cgroup,
# whose limit holds; a file that is open for writing is not approved.
# script: ticks ticks.stp
# script: shell shell.stp
# script: large large_array.stp
# programs: /usr/bin/ionice
# limit: 200
# memory_cgroups: yes
# stdout: ^descriptors: all refused, and all modules gone$
# stdout: ^rotated into one: gone$
# The C library gives a set-uid program streams in place of closed ones that cannot be written.
# stdout: ^closed streams: 8$
# stdout: ^limited files: 0 0, with no way out an error: [0-9]$
# stdout: ^commands inherit: 0 1 2 3$
# stdout: ^system.. inherits: 0 1 2 3$
# stdout: ^spile-root: uid 0 0 0 0, groups none, in /, files 7, nice 0, file size unlimited, address space unlimited, oom -1000, mask 0077, timer slack 50000, disk none
# stdout: ^spile-guard: uid 0 0 0 0, groups none, in /, files 5, nice 0, file size unlimited, address space unlimited, oom -1000, mask 0077, timer slack 50000, disk none
# stdout: ^signals to it: 1 1$
# stdout: ^session: its files 1, debugger: .*Operation not permitted
# stdout: ^frozen: its module is removed$
# stdout: ^charged to the caller's cgroup: most of [5-9][0-9] MB$
# stdout: ^limit of the cgroup: 4 ERROR: the session takes more memory than there is, .*, killed: 0$
# stdout: ^written: 3 .*open for writing
# stdout: ^written no more: 0$

approve ./*.ko
printf 'spileusr:x:601:usr\nspiledev:x:603:dev\n' >>/etc/group
add_users dev:5005 usr:5001 no:5004
make_suid
enter_open
ln -s /proc/self/fd link
# Its own descriptors begin at 3. What cannot be opened is refused (8); what can be opened belongs to the caller, if it is a
# file at all (0).
for name in /proc/self/fd /proc/thread-self/fd /dev/fd /tmp/open/link; do
	for number in 3 4 5 6 7; do
		s=$(status usr suid ticks -T 0.2 -o $name/$number)
		case $s in
		0 | 8) ;;
		*) echo "$name/$number: $s $(cat /tmp/err)" && exit 1 ;;
		esac
		unloaded ticks
	done
done
echo descriptors: all refused, and all modules gone
# A name that appears only later, when files rotate, and the file of --metrics.
for number in 3 4 5 6 7 8 9; do
	ln -sf /proc/self/fd/$number log.1
	as usr 'suid ticks -o log -S 1' >/dev/null 2>err &
	wait_for log.0 tick
	kill -s USR2 $(processes 5001)
	sleep 0.3
	kill -s INT $(processes 5001) 2>/dev/null || true
	wait $! || true
	unloaded ticks
	rm -f log.0 log.1
done
echo rotated into one: gone
echo "closed streams: $(status usr 'suid ticks -T 0.2 <&- >&- 2>&-')"
gone ticks
# A limit of file sizes is meant for files that stay.
cp "$here/ticks.ko" own.ko
chmod 644 own.ko
limited=$(status usr 'ulimit -f 1; suid ticks -T 0.2 -o /dev/null')
soft=$(status dev 'ulimit -S -f 1; suid ./own.ko -T 0.2 -o /dev/null')
echo "limited files: $limited $soft, with no way out an error: $(status dev 'ulimit -f 1; suid ./own.ko -T 0.2 -o /dev/null')"
gone ticks
rm own.ko
# ls has a descriptor of its own, 3.
as usr "suid ticks -o mine -c 'ls /proc/self/fd'" >/tmp/out 2>err
echo "commands inherit: $(echo $(cat /tmp/out))"
printf '#!/bin/sh\nls /proc/self/fd >/tmp/open/listed\n' >sh && chmod 755 sh
as usr 'PATH=/tmp/open:$PATH suid shell' >/dev/null 2>&1
rm sh
echo "system() inherits: $(echo $(cat listed))"

mount -t cgroup2 none /sys/fs/cgroup
mkdir /sys/fs/cgroup/theirs
rm -f mine
cat >started <<'END'
echo 0 >/sys/fs/cgroup/theirs/cgroup.procs
echo 900 >/proc/self/oom_score_adj
renice -n 15 -p $$
exec ionice -c 3 caller late su usr -c 'umask 0; ulimit -f 4000; ulimit -v 4000000; exec 9<messages 8>>other; exec suid ticks -o mine'
END
sh started >/dev/null 2>messages &
wait_for mine tick || { cat messages; exit 1; }
session=$(processes 5001)
limit() { sed -n "s/^Max $1 *\([a-z0-9]*\) .*/\1/p" "$at/limits"; }
field() { sed -n "s/^$1:[[:space:]]*//p" "$at/status" | tr '\t' ' '; }
for name in spile-root spile-guard; do
	remover=$(named $name)
	at=/proc/$remover
groups=$(field Groups)
[ "$(cat "$at/cgroup")" = 0::/ ]
echo "$name: uid $(field Uid), groups ${groups:-none}, in $(readlink "$at/cwd"), files $(ls "$at/fd" | wc -l), nice $(cut -d' ' -f19 "$at/stat"), file size $(limit 'file size'), address space $(limit 'address space'), oom $(cat "$at/oom_score_adj"), mask $(field Umask), timer slack $(cat "$at/timerslack_ns"), disk $(ionice -p "$remover")"
done
echo "signals to it: $(status usr kill -s STOP "$remover") $(status usr kill -s KILL "$remover")"
files=$(status usr ls "/proc/$session/fd")
echo "session: its files $files, debugger: $(as usr "strace -p $session" 2>&1 | head -n 1)"
echo 1 >/sys/fs/cgroup/theirs/cgroup.freeze
kill -s KILL "$session"
unloaded ticks
echo frozen: its module is removed
echo 0 >/sys/fs/cgroup/theirs/cgroup.freeze

# The module is loaded by a process that is not in this cgroup.
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
charged=/sys/fs/cgroup/charged
mkdir $charged
(echo 0 >$charged/cgroup.procs; exec su usr -c 'exec suid large -o ready') >/dev/null 2>err &
wait_for ready ready || { cat err; exit 1; }
[ "$(cat "/proc/$(named spile-root)/cgroup")" = 0::/ ]
takes=$(spilerun status large | sed -n 's/.*skipped, \([0-9]*\) KB$/\1/p')
is=$(($(cat $charged/memory.current) >> 10))
# The rest is what handlers have for themselves: it is made when the module is loaded.
[ "$is" -ge $((takes / 4 * 3)) ] && echo "charged to the caller's cgroup: most of $((takes >> 10)) MB" || echo "charged: $is of $takes KB"
kill -s INT "$(processes 5001)"
unloaded large
dmesg -c >/dev/null
echo 24M >$charged/memory.max
s=0
(echo 0 >$charged/cgroup.procs; exec su usr -c 'exec suid large -o ready') >/dev/null 2>err || s=$?
echo "limit of the cgroup: $s $(cat err), killed: $(dmesg | grep -c 'Killed process')"
unloaded large
for tenth in $(seq 100); do ! rmdir $charged 2>/dev/null || break; pause 0.1; done
umount /sys/fs/cgroup

cp "$here/ticks.ko" held.ko
chown usr held.ko
su usr -c 'exec 5>>held.ko; echo open; exec sleep 1000' >opened &
writer=$!
wait_for opened open
chown root held.ko
chmod 644 held.ko
mv held.ko "$place/ticks.ko"
echo "written: $(status usr suid ticks -T 0.1) $(cat /tmp/err)"
kill $writer
wait $writer || true
echo "written no more: $(status usr suid ticks -T 0.1)"
