# Shows: a file system that a user serves (FUSE) and that lies about sizes, changes a file while it is read, fails or does not answer: a module there is
# run as it was read, or refused, and its session's end and other loaders do not wait; nor does a session of root whose stacks lead through such files.
# The path of a program with probes may lead there later. Modules on overlayfs are approved as elsewhere.
# script: ticks ticks.stp
# script: other ticks.stp
# script: stacks_of stacks_of.stp
# script: program tests/probe/process/user.stp
# modules: fuse overlay
# guest: debian
# limit: 200
# stdout: ^good 0, large 0, short 0, fails 3, middle 3$
# stdout: ^by turns: 0 0 0 0$
# stdout: ^hangs: others meanwhile 0 0, then 3$
# stdout: ^held: others meanwhile 0 0, then 3$
# stdout: ^stuck: others meanwhile 0 0, then 8$
# stdout: ^output that is full: 8$
# stdout: ^root's stacks: the server stopped, seen, 0$
# stdout: ^root's probes in a program whose directory leads there: 0$
# stdout: ^overlay: 0, open for writing 3, loose 3$

approve ticks.ko other.ko
printf 'spileusr:x:601:usr,two\nspiledev:x:603:dev\n' >>/etc/group
add_users usr:5001 two:5003 dev:5005
make_suid
enter_open
cp "$here/ticks.ko" "$here/other.ko" /tmp
serve() {
	mkdir "$1"
	chown dev "$1"
	served 5005 "$PWD/$1" "$2" "$3" >"$1.log" 2>&1 &
	wait_for "$1.log" served || { cat "$1.log"; exit 1; }
}
serve fs /tmp/ticks.ko "$here/stacks_of.ko"
meanwhile() { echo "others meanwhile $(soon 10 spilerun "$place/other.ko" -T 0.1) $(soon 10 su two -c 'suid other -T 0.1')"; }
statuses=
for name in good large short fails middle; do
	statuses="$statuses${statuses:+, }$name $(status dev suid ./fs/$name -T 0.1)"
	gone ticks
done
echo "$statuses"
statuses=
for turn in 1 2 3 4; do
	statuses="$statuses $(status dev suid ./fs/turn -T 0.1)"
	gone ticks
	gone stacks_of
done
echo "by turns:$statuses"
# A process that waits for an answer cannot be killed (fs/fuse/dev.c, request_wait_answer()). Its server can, and root ends the
# connection of one that ignores signals (Documentation/filesystems/fuse.rst).
[ -e /sys/fs/fuse/connections/*/abort ] || mount -t fusectl none /sys/fs/fuse/connections
for name in hangs held stuck; do
	serve $name /tmp/ticks.ko /tmp/other.ko
	server=$!
	case $name in
	stuck) su usr -c 'exec suid ticks -o stuck/stuck' >/dev/null 2>err & ;;
	*) su dev -c "exec suid $name/$name -T 0.1" >/dev/null 2>err & ;;
	esac
	stuck=$!
	sleep 2
	statuses=$(meanwhile)
	[ $name != stuck ] || loaded ticks
	case $name in
	stuck) echo 1 >"/sys/fs/fuse/connections/$(sed -n "s|^[^ ]* [^ ]* 0:\([0-9]*\) / $PWD/stuck .*|\1|p" /proc/self/mountinfo)/abort" ;;
	*) kill -s KILL $server ;;
	esac
	s=0
	wait $stuck || s=$?
	unloaded ticks
	echo "$name: $statuses, then $s"
	umount -l $name
done
echo "output that is full: $(status usr suid ticks -T 0.3 -o fs/full)"
unloaded ticks

# A program on a file system whose server stops: every open(2) of it blocks.
serve programs "$(readlink -f /bin/busybox)" /tmp/other.ko
server=$!
su dev -c 'exec bash -c "exec -a sh programs/good -c \"while :; do :; done\""' &
spinning=$!
sleep 1
program=$(readlink /usr/bin/user)
directory=$(dirname "$program")
spilerun "$here/program.ko" -T 7 >/dev/null 2>program.err &
session=$!
armed program
mv "$directory" "$directory.kept"
ln -s "$PWD/programs" "$directory"
kill -s STOP $server
s=0
timeout -k 5 60 spilerun "$here/stacks_of.ko" -x $spinning -T 2 >out 2>err || s=$?
echo "root's stacks: the server stopped, $(head -n 1 out), $s"
# Checked for a minute, and not by the status alone: a process that blocks there cannot be killed.
for tenth in $(seq $((600 * PATIENCE))); do grep -qs '^State:.[^Z]' /proc/$session/status || break; pause 0.1; done
! grep -qs '^State:.[^Z]' /proc/$session/status || echo "it waits: $(cat /proc/$session/stack)"
kill -s KILL $server $spinning
rm "$directory"
mv "$directory.kept" "$directory"
s=0
wait $session || { s=$?; cat program.err; }
echo "root's probes in a program whose directory leads there: $s"
gone program
gone stacks_of
umount -l fs programs
umount /sys/fs/fuse/connections 2>/dev/null || true

mkdir /lower /upper
mount -t tmpfs none /upper
mkdir /upper/up /upper/work
cp "$place"/*.ko /lower
mount -t overlay -o lowerdir=/lower,upperdir=/upper/up,workdir=/upper/work none "$place"
plain=$(status usr suid ticks -T 0.1)
exec 7>>"$place/ticks.ko"
written=$(status usr suid ticks -T 0.1)
exec 7>&-
chmod 666 "$place/ticks.ko"
loose=$(status usr suid ticks -T 0.1)
echo "overlay: $plain, open for writing $written, loose $loose"
umount "$place"
umount /upper
