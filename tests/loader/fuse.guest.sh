# Shows: a file system that a user serves (FUSE) and that lies about sizes, changes a file while it is read, fails or does not answer: a module there is
# run as it was read, or refused, and its session's end and other loaders do not wait; nor does a session of root whose stacks lead through such files.
# Modules on overlayfs are approved as elsewhere.
# script: ticks ticks.stp
# script: other ticks.stp
# script: stacks_of stacks_of.stp
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
	served 5005 "$PWD/$1" "$2" "$3" >"$1.said" 2>&1 &
	wait_for "$1.said" served || { cat "$1.said"; exit 1; }
}
serve fs /tmp/ticks.ko "$here/stacks_of.ko"
meanwhile() { echo "others meanwhile $(soon 10 spilerun "$place/other.ko" -T 0.1) $(soon 10 su two -c 'suid other -T 0.1')"; }
said=
for name in good large short fails middle; do
	said="$said${said:+, }$name $(status dev suid ./fs/$name -T 0.1)"
	gone ticks
done
echo "$said"
said=
for turn in 1 2 3 4; do
	said="$said $(status dev suid ./fs/turn -T 0.1)"
	gone ticks
	gone stacks_of
done
echo "by turns:$said"
# A process that waits for an answer cannot be killed (fs/fuse/dev.c, request_wait_answer()); its server can.
for name in hangs held stuck; do
	serve $name /tmp/ticks.ko /tmp/other.ko
	server=$!
	case $name in
	stuck) su usr -c 'exec suid ticks -o stuck/stuck' >/dev/null 2>err & ;;
	*) su dev -c "exec suid $name/$name -T 0.1" >/dev/null 2>err & ;;
	esac
	stuck=$!
	sleep 2
	said=$(meanwhile)
	[ $name != stuck ] || loaded ticks
	kill -s KILL $server
	s=0
	wait $stuck || s=$?
	unloaded ticks
	echo "$name: $said, then $s"
	umount -l $name
done
echo "output that is full: $(status usr suid ticks -T 0.3 -o fs/full)"
unloaded ticks

# A program there, whose server stops: everybody who opens it waits.
serve programs "$(readlink -f /bin/busybox)" /tmp/other.ko
server=$!
su dev -c 'exec bash -c "exec -a sh programs/good -c \"while :; do :; done\""' &
spinning=$!
sleep 1
kill -s STOP $server
s=0
timeout -k 5 60 spilerun "$here/stacks_of.ko" -x $spinning -T 2 >out 2>err || s=$?
echo "root's stacks: the server stopped, $(head -n 1 out), $s"
kill -s KILL $server $spinning
gone stacks_of
umount -l fs programs

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
