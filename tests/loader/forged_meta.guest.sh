# Shows: a module whose description lies (another's name, slashes and control characters, counts and lengths of
# anything, a global twice, and mixtures of these) is refused with a message, or is a session that harms nobody: run by
# root, by spiledev, and approved and run by spileusr. Other sessions continue, nothing of it reaches a terminal
# unescaped, no module stays.
# script: ticks ticks.stp
# script: other ticks.stp
# limit: 300
# stdout: ^another's name: 3 3 3$
# stdout: ^names: 3 3 3, 3 3 3, 3 3 3, 3 3 3$
# stdout: ^releases: 3 3 3, 3 3 3$
# stdout: ^counts: 3 3 3, 3 3 3, 3 3 3, 3 3 3$
# stdout: ^lengths: 3 3 3, 3 3 3$
# stdout: ^a global twice: 0 0 0$
# stdout: ^loaded under another name: 3 3 3$
# stdout: ^its title: 0 0 0$
# stdout: ^its text is escaped: .*\\n.*\\x1b
# stdout: ^at random: [0-9]+ run, [1-9][0-9]* refused$
# stdout: ^the other session continues: 0$

approve ./*.ko
printf 'spileusr:x:601:usr,two\nspiledev:x:603:dev\n' >>/etc/group
add_users usr:5001 two:5003 dev:5005
make_suid
enter_open
su two -c 'exec sleep 1000' &
present=$!
[ "$(status two suid -L other)" = 0 ]
cp "$here/ticks.ko" sound.ko
chmod 644 sound.ko
control=$(printf '[\001-\010\013-\037\177]')
# judge: the last command's output is safe for a terminal, its status $s valid, and its module removed.
judge() {
	case $s in
	[0-9] | 124 | 130) ;;
	*) echo "$1: $s"; head -c 2000 /tmp/err; exit 1 ;;
	esac
	! LC_ALL=C grep -a -e "$control" /tmp/err || exit 1
	! grep -aE 'panic|RUST_BACKTRACE|memory allocation|^ERROR: forged' /tmp/err || exit 1
	unloaded ticks
	loaded other
}
# each EDIT...: the statuses for root, for spiledev, and for spileusr, whose module is approved.
each() {
	forge sound.ko forged.ko "$@"
	chmod 644 forged.ko
	s=0
	timeout -s INT -k 20 10 spilerun ./forged.ko -v -T 0.1 >/tmp/out 2>/tmp/err </dev/null || s=$?
	judge "root: $*"
	by_root=$s
	s=$(status dev 'timeout -s INT -k 20 10 suid ./forged.ko -v -T 0.1')
	judge "dev: $*"
	by_dev=$s
	cp forged.ko "$place/ticks.ko"
	s=$(status usr 'timeout -s INT -k 20 10 suid ticks -v -T 0.1')
	judge "usr: $*"
	all="$by_root $by_dev $s"
}
# these EDIT...: each edit separately.
these() {
	statuses=
	for edit; do
		each "$edit"
		statuses="$statuses${statuses:+, }$all"
	done
	echo "$statuses"
}

forge sound.ko - >fields
# The first count is that of the targets.
first=$(sed -n 's/^\([0-9]*\) = .*/\1/p' fields | sed -n 2p)
last=$(sed -n 's/^\([0-9]*\) = .*/\1/p' fields | tail -n 1)
# The first of that name is the global; the others are names of printed values.
global=$(sed -n 's/^\([0-9]*\) line$/\1/p' fields | head -n 1)
each text:0=other
echo "another's name: $all"
echo "names: $(these text:0= text:0=../ticks 'text:0=ticks\n' 'text:0=a b')"
echo "releases: $(these text:3=../../../etc 'text:3=6.1\n')"
echo "counts: $(these count:$first=4294967295 count:$first=1000000 count:$last=4294967295 count:$last=1)"
echo "lengths: $(these bytes:1=4294967295 bytes:$global=70000)"
each twice
echo "a global twice: $all"
each loads=another
unloaded another
echo "loaded under another name: $all"
each 'text:1=a\nERROR: forged\e[2J' 'text:2=\r\e]0;x\007'
echo "its title: $all"
# Same length as before: the module itself returns its description with the length that was compiled in.
each 'text:1=a\n\e[2Jbcd'
as usr 'suid -L ticks' 2>/dev/null
echo "its text is escaped: $(as usr suid status ticks | head -n 1)"
as usr suid -d ticks
unloaded ticks
ran=0 refused=0
for turn in $(seq 25); do
	each random=$turn
	for s in $all; do
		case $s in
		3) refused=$((refused + 1)) ;;
		*) ran=$((ran + 1)) ;;
		esac
	done
done
echo "at random: $ran run, $refused refused"
echo "the other session continues: $(status two suid -d other)"
gone other
kill $present
