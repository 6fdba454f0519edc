# Shows: spilerun installed set-uid: permissions of each group; hostile paths, links, directories and environments are refused or
# without effect; the session runs with the caller's own rights, and its module is removed at the end.
# script: ticks ticks.stp
# script: shell shell.stp
# limit: 120
# stdout: ^nobody: 4 running a module: only for root and members of the group spileusr$
# stdout: ^usr: approved runs, no rights left: 0000001000000000, uid 5001$
# stdout: ^usr: output is the caller's$
# stdout: ^usr: elsewhere 4, root's file 4, traversal 4, link 3, writable file 3, writable directory 3, other's file 3$
# stdout: ^usr: while it is read: 6 6, cannot switch: 4$
# stdout: ^usr: may look$
# stdout: ^usr: environment without effect: 5001$
# stdout: ^usr: killed, and its module is removed$
# stdout: ^sys: ends it$
# stdout: ^sys: elsewhere 4 3 4 4: .*there is no certificate in /etc/spile/keys
# stdout: ^dev: runs anything$
# stdout: ^swapped files do no harm$
# stdout: ^services: 4$

approve ticks.ko shell.ko
printf 'spileusr:x:601:usr\nspilesys:x:602:sys\nspiledev:x:603:dev\n' >>/etc/group
add_users usr:5001 sys:5002 dev:5003 no:5004
make_suid
cd /tmp
mkdir -p open && chmod 777 open
cd open
# The session of a user's set-uid spilerun.
# The session of a user's set-uid spilerun.
session_of() { processes "$1" | head -n 1; }

echo "nobody: $(status no suid ticks) $(sed -n 's/^ERROR: //p' /tmp/err)"

as usr 'suid ticks -o mine' >/dev/null 2>err &
wait_for mine tick
pid=$(session_of 5001)
echo "usr: approved runs, no rights left: $(sed -n 's/^CapPrm:\t//p' "/proc/$pid/status"), uid $(sed -n 's/^Uid:\t\([0-9]*\)\t\1\t\1\t\1$/\1/p' "/proc/$pid/status")"
[ "$(stat -c %u mine)" = 5001 ] && [ "$(status usr suid ticks -o /root/theirs)" = 8 ] && [ ! -e /root/theirs ] && echo "usr: output is the caller's"
look=$(status usr suid status ticks)
cannot="$(status usr suid -d ticks) $(status usr suid -A ticks), cannot switch: $(status usr suid observe ticks)"
kill -INT "$pid"
for tenth in $(seq 50); do loaded ticks || break; pause 0.1; done
gone ticks

cp "$place/ticks.ko" mine.ko && chmod 666 mine.ko
elsewhere=$(status usr suid ./mine.ko)
rooted=$(status usr suid /root/variant/lustre.ko)
traversal=$(status usr suid "$place/../spile/ticks.ko")
ln -s /tmp/open/mine.ko "$place/linked.ko"
cp "$place/ticks.ko" "$place/loose.ko" && chmod 666 "$place/loose.ko"
cp "$place/ticks.ko" "$place/theirs.ko" && chown 5001 "$place/theirs.ko"
link=$(status usr suid linked) loose=$(status usr suid loose) theirs=$(status usr suid theirs)
chmod 777 "$place"
directory=$(status usr suid ticks)
chmod 755 "$place"
echo "usr: elsewhere $elsewhere, root's file $rooted, traversal $traversal, link $link, writable file $loose, writable directory $directory, other's file $theirs"
echo "usr: while it is read: $cannot"
[ "$look" = 0 ] && echo usr: may look

printf '#!/bin/sh\nid -u >/tmp/open/hostile\n' >sh && chmod 755 sh
as usr 'PATH=/tmp/open:$PATH LD_PRELOAD=/tmp/open/x.so TMPDIR=/tmp/open NOTIFY_SOCKET=/tmp/open/s suid shell' >/dev/null 2>&1
echo "usr: environment without effect: $(cat hostile 2>/dev/null || cat asked)"

as usr 'suid ticks -o killed' >/dev/null 2>err &
wait_for killed tick
kill -KILL "$(session_of 5001)"
for tenth in $(seq 50); do loaded ticks || break; pause 0.1; done
gone ticks
echo usr: killed, and its module is removed

as usr 'suid -L ticks' >/dev/null 2>err
[ "$(status sys suid -d ticks)" = 0 ]
gone ticks
echo sys: ends it
# A signature is worthless if root trusts no key.
{ cat "$place/ticks.ko"; head -c 300 /dev/zero; printf '\000\000\002\000\000\000\000\000\000\000\001\054~Module signature appended~\n'; } >signed.ko
elsewhere="$(status sys suid ./mine.ko) $(status sys suid /root/variant/lustre.ko) $(status usr suid ./signed.ko) $(status sys suid ./signed.ko)"
echo "sys: elsewhere $elsewhere: $(cat /tmp/err)"
[ "$(status dev suid ./mine.ko -T 0.2)" = 0 ]
gone ticks
echo dev: runs anything
# The bytes that were checked are loaded, whatever happens to the file meanwhile: complete runs or refusals, nothing else.
cp "$place/ticks.ko" /tmp/good.ko
head -c 5000 /tmp/good.ko >/tmp/bad.ko
while [ ! -e /tmp/enough ]; do
	cp /tmp/bad.ko "$place/new" && mv "$place/new" "$place/ticks.ko"
	cp /tmp/good.ko "$place/new" && mv "$place/new" "$place/ticks.ko"
done &
for turn in 1 2 3 4 5 6; do
	case $(status usr suid ticks -T 0.05) in
	0 | 3) gone ticks ;;
	*) cat /tmp/err && exit 1 ;;
	esac
done
touch /tmp/enough
wait $!
echo swapped files do no harm
echo "services: $(status dev suid service list)"
