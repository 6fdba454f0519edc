# Shows: unusual callers of a set-uid spilerun: no arguments at all, thousands of them, an invalid environment, signals
# blocked and ignored (a command that ends, and SIGTERM, end the session nevertheless), timers, a thousand descriptors, own namespaces, a root directory with its own groups, a subreaper
# that becomes the parent of its processes, shared directory and descriptors: each gets a status and a message, and
# root's rights only if entitled, and no module stays.
# script: ticks ticks.stp
# limit: 300
# stdout: ^noargs: 2$
# stdout: ^long: [2-9]$
# stdout: ^environ: 0$
# stdout: ^blocked: 0$
# stdout: ^alarm: (0|142)$
# stdout: ^files: 0$
# stdout: ^user: 4$
# stdout: ^spaces: 4$
# stdout: ^adopts: (137|147)$
# stdout: ^group: 0$
# stdout: ^empty: 0$
# stdout: ^late: 0$
# The kernel's own name for itself is where approved modules are.
# stdout: ^old: 3$
# With a shared directory it gets no rights (fs/exec.c, check_unsafe_exec()).
# stdout: ^shares: 4$
# stdout: ^jail: 4$
# stdout: ^blocked, the command ends: 0$
# stdout: ^blocked, a signal ends it: (0|124)$

approve ./*.ko
printf 'spileusr:x:601:usr\n' >>/etc/group
add_users usr:5001
make_suid
enter_open
# judge WAY: the status $s is valid, the output is safe for a terminal, and no module is left.
judge() {
	case $s in
	[0-9] | 12[0-9] | 13[0-9] | 14[0-9]) ;;
	*) echo "$1: $s"; head -c 1000 /tmp/err; exit 1 ;;
	esac
	! grep -aqE 'panicked|SIGSEGV' /tmp/err || { echo "$1: $s $(cat /tmp/err)"; exit 1; }
	! LC_ALL=C grep -a -e "$(printf '[\001-\010\013-\037\177]')" /tmp/err || exit 1
	unloaded ticks
}
for way in noargs long environ blocked alarm files user spaces adopts group empty late old shares jail; do
	seconds=0.5
	[ $way != adopts ] || seconds=30
	s=$(status usr "timeout -s KILL 60 caller $way /usr/bin/suid ticks -T $seconds")
	judge $way
	echo "$way: $s"
	[ $s != 124 ] || cat /tmp/err
done
s=$(status usr "timeout -s KILL 60 caller blocked /usr/bin/suid ticks -c true")
judge blocked
echo "blocked, the command ends: $s"
s=$(status usr "timeout -k 60 5 caller blocked /usr/bin/suid ticks")
judge blocked
echo "blocked, a signal ends it: $s"
