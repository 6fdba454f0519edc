# Shows: on a set-uid spilerun, further members of the classes of staprun's known vulnerabilities (the table in SECURITY.md): paths
# that lead to a file of the caller while it is exchanged, descriptors for paths, other spellings of the approved directory, names of
# the program, variables that shells and the module tools read, other modules than the loader's own for -d, divisors 0 and -1.
# script: ticks ticks.stp
# script: own ticks.stp
# script: divides divides.stp
# modules: lustre
# limit: 200
# stdout: ^exchanged path: 6 refused, none ran$
# stdout: ^descriptors as paths: 4 4 4$
# stdout: ^hard link: 4$
# stdout: ^spellings: 12 refused$
# stdout: ^names of the program: 0 0 0 0 0 0 0 0, none ran as root$
# stdout: ^variables: no program ran$
# stdout: ^unloaded by: usr 0, sys 0, dev 0$
# stdout: ^all leftovers: usr 4, running yes$
# stdout: ^-9223372036854775808 0 -9223372036854775808$
# stdout: ^divided: caught 1$

approve ticks.ko
printf 'spileusr:x:601:usr\nspilesys:x:602:sys\nspiledev:x:603:dev\n' >>/etc/group
add_users usr:5001 sys:5002 dev:5003
make_suid
enter_open
cp "$here/own.ko" own.ko
chown 5001 own.ko
chmod 644 own.ko

# CVE-2009-0784, CVE-2011-2503: the path leads to the approved file at one moment, to the caller's at the next.
su usr -c "while [ ! -e enough ]; do ln -sfn $place/ticks.ko race.ko; ln -sfn /tmp/open/own.ko race.ko; done" &
racing=$!
count=0
for path in ./race.ko /tmp/open/race.ko ./race.ko /tmp/open/race.ko ./race.ko /tmp/open/race.ko; do
	s=$(status usr suid $path -T 0.1)
	[ $s = 4 ] && ! loaded own && count=$((count + 1)) || echo "race: $s $(cat /tmp/err)"
done
touch enough
wait $racing
echo "exchanged path: $count refused, none ran"
echo "descriptors as paths: $(status usr "suid /dev/fd/3 -T 0.1 3<$place/ticks.ko") $(status usr "suid /proc/self/fd/0 -T 0.1 <own.ko") $(status usr "suid /dev/stdin -T 0.1 <own.ko")"
echo 0 >/proc/sys/fs/protected_hardlinks
s=$(su usr -c "ln $place/ticks.ko hard.ko 2>/dev/null && suid ./hard.ko -T 0.1 >/dev/null 2>&1; echo \$?")
echo "hard link: $s"

# CVE-2011-2502
count=0
release=$(uname -r)
mkdir -p "$place/below"
chown 5001 "$place/below"
cp own.ko "$place/below/own.ko"
chown 5001 "$place/below/own.ko"
for path in below/own "$place/below/own.ko" "$place/./below/../below/own.ko" "/proc/self/root$place/below/own.ko" /proc/self/cwd/own.ko \
	"/lib/modules/$release/spile/../../../../tmp/open/own.ko" "$place/ticks.ko/../../../../../tmp/open/own.ko" "//tmp/open/own.ko" \
	../../../../tmp/open/own '' . ..; do
	s=$(status usr "suid '$path' -T 0.1")
	case $s in
	[2-9]) count=$((count + 1)) ;;
	*) echo "$path: $s $(cat /tmp/err)" ;;
	esac
	gone own
done
echo "spellings: $count refused"
rm -r "$place/below"

# CVE-2010-4170: what is in the environment, and the name of the program, which the caller chooses.
said=
for name in staprun stapio stap spile modprobe sh '' /bin/sh; do
	s=$(status usr "caller 'name=$name' /usr/bin/suid ticks -T 1 -c 'id -u >>ids'")
	said="$said $s"
	unloaded ticks
done
[ -z "$(grep -v '^5001$' ids)" ] && echo "names of the program:$said, none ran as root" || cat ids
printf '#!/bin/sh\nid -u >>/tmp/open/ran\n' >tool
chmod 755 tool
for name in modprobe depmod kmod insmod rmmod sh; do cp tool $name; done
at=/tmp/open
s=$(status usr "PATH=$at BASH_ENV=$at/tool ENV=$at/tool IFS=/ SHELLOPTS=xtrace PS4='\$($at/tool)' SHELL=$at/sh MODPROBE=$at/modprobe KMOD=$at/kmod \
	SYSTEMTAP_STAPRUN=$at/tool SYSTEMTAP_STAPIO=$at/tool SPILE_CACHE_DIR=$at XDG_RUNTIME_DIR=$at /usr/bin/suid ticks -T 0.1")
[ $s = 0 ] && [ ! -e ran ] && echo 'variables: no program ran' || cat /tmp/err ran
rm -f modprobe depmod kmod insmod rmmod sh

# CVE-2010-4171: lustre is loaded and idle, and not the loader's.
said=
for who in usr sys dev; do
	for name in lustre lustre.ko /sys/module/lustre ../module/lustre '-d lustre' 'lustre lustre'; do status $who "suid -d $name" >/dev/null; done
	loaded lustre
	said="$said, $who $(loaded lustre; echo $?)"
done
echo "unloaded by:${said#,}"
spilerun "$place/ticks.ko" -o /dev/null 2>err &
session=$!
armed ticks
s=$(status usr "suid -d '*'")
echo "all leftovers: usr $s, running $(loaded ticks && kill -0 $session && echo yes)"
kill -INT $session
wait $session

# CVE-2011-1769, CVE-2011-1781
spilerun "$here/divides.ko"
