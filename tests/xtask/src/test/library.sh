# For shell tests in the guest. A test stops at its first failing command (`expect` prints which one).
set -e

# $SLOWNESS: factor for times in this guest; set for tests, but maybe not for other scripts.
: "${SLOWNESS:=1}"
# $PATIENCE: the same for timeouts; more on a busy machine.
: "${PATIENCE:=$SLOWNESS}"

# pause SECONDS: sleeps, without a process: in an emulated guest one takes 6 ms of CPU time. Nothing is ever written to the pipe,
# which the guests of the tests have.
pause() {
	if [ -p /run/nothing ]; then
		read -r -t "$1" nothing <>/run/nothing || true
	else
		sleep "$1"
	fi
}

# wait_for FILE TEXT [SECONDS]: waits until a line of FILE contains TEXT.
wait_for() {
	wait_turns=$((${3:-10} * 10 * PATIENCE))
	while [ $wait_turns -gt 0 ]; do
		! [ -s "$1" ] || ! grep -qF -- "$2" "$1" || return 0
		pause 0.1
		wait_turns=$((wait_turns - 1))
	done
	echo "after ${3:-10} s there is no '$2' in $1:"
	cat "$1"
	return 1
}

# soon SECONDS COMMAND...: prints the command's status, and its time if that is not below SECONDS.
soon() {
	soon_limit=$1 soon_status=0
	shift
	begin_wait
	"$@" >/dev/null 2>&1 || soon_status=$?
	not_waited "$soon_limit" >/dev/null && echo $soon_status || echo "$soon_status after $(not_waited "$soon_limit")"
}

# begin_wait: what follows is not to wait. not_waited SECONDS: fails, and prints the time, if it has taken as long. On a busy machine all takes
# longer in a guest, but its CPUs are idle only while processes wait.
begin_wait() { read -r time_began time_was_idle </proc/uptime; }
not_waited() {
	read -r time_now time_idle </proc/uptime
	time_limit=$(($1 * SLOWNESS))
	time_took=$((${time_now%.*} - ${time_began%.*}))
	[ $time_took -ge $time_limit ] || return 0
	# One CPU does the work, and the others are idle all the time.
	time_waited=$((${time_idle%.*} - ${time_was_idle%.*} - time_took * ($(grep -c ^processor /proc/cpuinfo) - 1)))
	[ $time_waited -ge $time_limit ] || [ $time_took -ge $((time_limit * PATIENCE)) ] || return 0
	echo "$time_took s, of which it waited $time_waited"
	return 1
}

# start NAME TEXT [OPTIONS]: runs NAME.ko in the background, with its output in NAME.out and NAME.err, and returns when
# it has printed TEXT. Its process is $loader.
start() {
	script=$1 text=$2
	shift 2
	# The text of an earlier session would be found before the new one has opened the file.
	rm -f "$script.out" "$script.err"
	spilerun "$script.ko" "$@" >"$script.out" 2>"$script.err" &
	loader=$!
	wait_for "$script.out" "$text" || { cat "$script.err"; return 1; }
}

# armed NAME: waits until the session of module NAME runs: the output of begin probes comes before arming is complete.
# At most two minutes, and only while its loader, if NAME.pid names it, runs.
armed() {
	armed_turns=0
	while [ $armed_turns -lt $((20 + 120 * PATIENCE)) ]; do
		if [ -f "$1.pid" ]; then
			read -r armed_loader <"$1.pid"
			kill -0 "$armed_loader" 2>/dev/null || break
		fi
		if loaded "$1"; then
			case $(spilerun status "$1" 2>/dev/null) in
			*': running, '*) return 0 ;;
			esac
		fi
		# Each check takes CPU time from what it waits for.
		armed_turns=$((armed_turns + 1))
		[ $armed_turns -gt 20 ] && pause 1 || pause 0.1
	done
	echo "$1 does not run:"
	cat "$1.err" 2>/dev/null || true
	return 1
}

# handled NAME HITS: waits until a probe of the session of module NAME has handled as many.
handled() {
	for tenth in $(seq $((300 * PATIENCE))); do
		for handled_hits in $(spilerun status "$1" --json | grep -o '"handled":[0-9]*' | cut -d: -f2); do
			[ "$handled_hits" -lt "$2" ] || return 0
		done
		pause 0.1
	done
	spilerun status "$1"
	return 1
}

# start_armed NAME TEXT [OPTIONS]: the same, and waits until its probes are armed.
start_armed() { start "$@" && armed "$script"; }

# stop [SIGNAL]: ends what `start` has started, and waits for it; sets $status.
stop() {
	kill -s "${1:-INT}" "$loader"
	status=0
	wait "$loader" || status=$?
}

# expect TEXT COMMAND...: the command's output, errors included, contains TEXT; its status is ignored.
expect() {
	text=$1
	shift
	output=$("$@" 2>&1) || true
	case $output in
	*"$text"*) ;;
	*)
		echo "expected '$text' of: $*"
		echo "got: $output"
		return 1
		;;
	esac
}

# as_user COMMAND: by a user whose id is above 1000.
as_user() { su user -c "$*"; }

# mount_lustre: the file system lustre, with a file, on /mnt.
mount_lustre() { modprobe lustre && mount -t lustre none /mnt; }

# unload_family: removes the generated modules, each before the one that it depends on.
unload_family() {
	for number in $(seq -w 19 -1 0); do
		[ ! -d "/sys/module/fam$number" ] || rmmod "fam$number"
	done
}

# fail_with ERRNO: the error of reading an attribute on it; 0 for none.
fail_with() { echo "$1" >/sys/module/lustre/parameters/fail_errno; }

# check_memory BEFORE AFTER MORE: whether the kernel uses at most MORE above BEFORE, all in KB. KASAN quarantines freed
# memory, and kmemleak allocates objects; such a kernel is checked for leaks after each test.
check_memory() {
	if [ $2 -lt $(($1 + $3)) ] || [ -f /sys/kernel/debug/kmemleak ]; then
		echo memory: freed
	else
		echo "memory: $1 KB before, $2 KB after"
	fi
}

# loaded NAME: whether the module is loaded.
loaded() { [ -d "/sys/module/$1" ]; }

# gone NAME: fails while the module is loaded. (After `!` the shell does not stop at a failure.)
gone() {
	loaded "$1" || return 0
	echo "module $1 is still loaded"
	return 1
}

# second_start NAME: starts module NAME, which is being disarmed, once more, and interrupts that. Says that it waited and what to do.
second_start() {
	# As in start.
	rm -f waits
	spilerun "$1.ko" 2>waits &
	second=$!
	# Before it has its handlers, the signal ends it without a message.
	wait_for waits 'NOTICE: waiting until the kernel has disarmed' >&2
	kill -INT $second
	wait $second || true
	if grep -q 'still being disarmed: try again' waits; then echo 'a start waits'; else cat waits >&2; fi
}

# removed NAME: waits until the module is removed, by a process in the background.
removed() {
	removed_turns=$((600 * PATIENCE))
	while loaded "$1" && [ $removed_turns -gt 0 ]; do
		pause 0.1
		removed_turns=$((removed_turns - 1))
	done
	gone "$1"
}

# approve FILE.ko...: puts modules into $place, the directory of approved modules.
approve() {
	place=/lib/modules/$(uname -r)/spile
	mkdir -p "$place"
	cp "$@" "$place"
	chmod 644 "$place"/*
}

# add_users NAME:UID...: with a group of the same number.
add_users() {
	for who; do
		echo "${who%:*}:x:${who#*:}:${who#*:}::/tmp:/bin/sh" >>/etc/passwd
	done
}

# make_suid: installs spilerun set-uid under the name suid, and lets users write in /tmp.
make_suid() {
	rm -f /usr/bin/suid
	cp /usr/bin/spilerun /usr/bin/suid
	chmod 4755 /usr/bin/suid
	chmod 1777 /tmp
}

# enter_open: goes to a directory in which everybody may write; sets $here to the one before.
enter_open() {
	here=$PWD
	mkdir -p /tmp/open
	chmod 777 /tmp/open
	cd /tmp/open
}

# as USER COMMAND...: runs the command as that user.
as() { user=$1; shift; su "$user" -c "$*"; }

# status USER COMMAND...: the same, with its output in /tmp/out and /tmp/err; prints its exit status.
status() { s=0; as "$@" >/tmp/out 2>/tmp/err || s=$?; echo $s; }

# processes UID: set-uid spilerun with this real user: a user's sessions, or with 0 the processes that remove their
# modules.
processes() {
	grep -l '^Name:.suid$' /proc/[0-9]*/status 2>/dev/null | xargs -r grep -l "^Uid:.$1	" 2>/dev/null | cut -d / -f 3
}

# unloaded NAME: waits until the module is not loaded any more.
unloaded() {
	unloaded_turns=$((150 * PATIENCE))
	while [ $unloaded_turns -gt 0 ]; do
		loaded "$1" || return 0
		pause 0.1
		unloaded_turns=$((unloaded_turns - 1))
	done
	gone "$1"
}

# named NAME: ids of the processes with this name.
named() {
	for named_file in /proc/[0-9]*/comm; do
		read -r named_comm 2>/dev/null <"$named_file" || continue
		[ "$named_comm" != "$1" ] || { named_file=${named_file#/proc/}; echo "${named_file%/comm}"; }
	done
}

# start_all NAME...: runs each NAME.ko with its own loader, output in NAME.out and NAME.err, all armed; sets $loaders.
start_all() {
	for script; do
		spilerun "$script.ko" >"$script.out" 2>"$script.err" &
		loaders="$loaders $!"
		echo $! >"$script.pid"
	done
	for script; do
		armed "$script"
	done
}

# shows NAME REGEX: whether NAME.out has such a line; if not, prints it and sets $failed.
shows() {
	grep -qE -e "$2" "$1.out" || { echo "$1 does not show $2:"; head -n 30 "$1.out" "$1.err"; failed=1; }
}

# a_while MILLISECONDS: sleeps for a random part of them.
a_while() { sleep "$(awk -v seed="$(hexdump -n 4 -e '"%u"' /dev/urandom)" -v most="$1" 'BEGIN { srand(seed); printf "%.6f", rand() * most / 1000 }')"; }

# any_of_suid: whether a process of a set-uid spilerun is there.
any_of_suid() { grep -qxE 'suid|spile-(root|guard|start)' /proc/[0-9]*/comm 2>/dev/null; }

# nothing_of_suid NAME: waits until neither the module nor a process of a set-uid spilerun is there.
nothing_of_suid() {
	unloaded "$1"
	for tenth in $(seq $((150 * PATIENCE))); do
		any_of_suid || return 0
		pause 0.1
	done
	echo "left: $(named suid) $(named spile-root) $(named spile-guard) $(named spile-start)"
	return 1
}

# judge_start WAY: the status $s of a set-uid spilerun is valid, and its messages, /tmp/err, are safe for a terminal.
judge_start() {
	case $s in
	[0-9] | 12[67] | 13[79] | 152) ;;
	*) echo "$1: $s"; head -c 1000 /tmp/err; exit 1 ;;
	esac
	! grep -aq panicked /tmp/err || { echo "$1: $s $(cat /tmp/err)"; exit 1; }
	! LC_ALL=C grep -a -e "$(printf '[\001-\010\013-\037\177]')" /tmp/err || { echo "$1: control characters"; exit 1; }
}

# mount_nfs: exports /export, a new tmpfs, and mounts it by NFS version 3 at /mnt/nfs; $rpcd is the port mapper and mount daemon. Needs
# the modules nfsd, nfs and nfsv3.
mount_nfs() {
	mkdir -p /export /mnt/nfs
	ifconfig lo 127.0.0.1 up
	mount -t tmpfs none /export
	mount -t nfsd nfsd /proc/fs/nfsd
	echo 'nfsd 127.0.0.1 2000000000 all' >/proc/net/rpc/auth.unix.ip/channel
	echo 'all /export 2000000000 9218 65534 65534 0' >/proc/net/rpc/nfsd.export/channel
	printf 'all 1 \\x00000000 2000000000 /export\n' >/proc/net/rpc/nfsd.fh/channel
	rpcd &
	rpcd=$!
	# The second of its ports, 635: it listens.
	for tenth in $(seq $((100 * PATIENCE))); do ! grep -q ':027B 00000000:0000 0A' /proc/net/tcp || break; pause 0.1; done
	echo '-2 +3 -4 -4.1 -4.2' >/proc/fs/nfsd/versions
	# Newer kernels make no listener by themselves.
	echo "tcp 2049" >/proc/fs/nfsd/portlist
	echo 2 >/proc/fs/nfsd/threads
	# Not by the type nfs, which this mount program handles by itself.
	mount -i -t nfs4 -o vers=3,nolock,proto=tcp,addr=127.0.0.1,port=2049,mountaddr=127.0.0.1,mountport=635,mountproto=tcp,mountvers=3 127.0.0.1:/export /mnt/nfs
}

# stop_nfsd: ends the kernel's NFS server, and unmounts what it has exported, /export.
stop_nfsd() {
	echo 0 >/proc/fs/nfsd/threads
	umount /proc/fs/nfsd
	# It is released shortly after its last thread has exited.
	for tenth in $(seq 300); do
		umount /export 2>/dev/null && return
		pause 0.1
	done
	umount /export
}
