# Runs the tests of one guest. Sourced by the guest's script, which then calls run_test for each.
# /root/t/N/ is the directory of test number N: command (what to run), setup, modules, limit, random (whether programs have
# random addresses: 2 or 0).
# Returns to the host N.stdout, N.stderr, N.dmesg, N.left, N.late (not empty: it was killed) and, last, N.status.

# A process takes milliseconds in an emulated guest, so this starts few.

# Directories of procfs probes: those of unloaded modules should be removed too.
session_directories() { echo " $(echo /proc/systemtap/*) "; }

loaded_modules() { cut -d' ' -f1 /proc/modules; }

# Loaders still running, also those that a test copied to another name: "PID COMMAND".
running_loaders() {
	ls -ln /proc/[0-9]*/exe 2>/dev/null | while read -r entry; do
		case $entry in
		*" -> "*/spilerun | *" -> "*/spilerun-* | *" -> "*/suid*)
			process=${entry##* /proc/}
			process=${process%%/exe*}
			echo "$process $(tr '\0' ' ' <"/proc/$process/cmdline")"
			;;
		esac
	done 2>/dev/null
}

# accounts FROM TO: copies the users and groups. Those that a test has added are removed: the next one would add them
# again.
accounts() {
	for file in passwd group; do
		if [ -f "$1/$file" ]; then cat "$1/$file" >"$2/$file"; else rm -f "$2/$file"; fi
	done
}

# Not by their times: -nt compares seconds, and the next test changes them in less.
accounts_changed() {
	for file in passwd group; do
		cmp -s /etc/$file /run/accounts/$file || { [ ! -f /etc/$file ] && [ ! -f /run/accounts/$file ]; } || return 0
	done
	return 1
}

# Reports to the host that the first test starts.
begin_tests() {
	mkdir -p /run/results /run/accounts
	accounts /etc /run/accounts
	release=$(uname -r)
	: >/run/results/begins
	give /run/results/begins 0.begins
}

# With kmemleak: leaked objects. Those younger than five seconds are reported after the next test.
look_for_leaks() {
	[ -f /sys/kernel/debug/kmemleak ] || return 0
	echo scan >/sys/kernel/debug/kmemleak
	cat /sys/kernel/debug/kmemleak
	echo clear >/sys/kernel/debug/kmemleak
}

# Ends the test, first by a signal that can be handled: a loader has a module to unload.
watch_over() {
	sleep "$1"
	echo late >$results.late
	kill -s INT -- "-$(cat $results.pid)"
	sleep 10
	kill -s KILL -- "-$(cat $results.pid)"
}

# give_parts NUMBER PART...: sends the test's results to the host.
give_parts() {
	number=$1
	shift
	for part in "$@"; do
		echo "file $number.$part $(stat -c %s "$results.$part")"
		cat "$results.$part"
	done >/dev/ttyS3
}

run_test() {
	cd "/root/t/$1" || return
	results=/run/results/$1
	: >$results.late
	read -r random <random
	echo "$random" >/proc/sys/kernel/randomize_va_space
	if [ -s modules ]; then
		for module in $(cat modules); do modprobe "$module"; done
	fi
	loaded_modules >$results.before
	directories=$(session_directories)
	dmesg -c >/dev/null

	: >$results.stdout
	: >$results.stderr
	: >$results.setup
	if [ ! -s setup ] || sh ./setup </dev/null >$results.setup 2>&1; then
		watch_over "$(cat limit)" >/dev/null 2>&1 &
		watcher=$!
		results=$results setsid sh -c 'echo $$ >"$results.pid"; unset results; . ./command' </dev/null >>$results.stdout 2>>$results.stderr
		echo $? >$results.status
		kill $watcher
	else
		{ echo "setup failed:"; cat $results.setup; } >>$results.stderr
		echo 255 >$results.status
	fi

	# A module being unloaded may still be on the list.
	for attempt in 1 2 3 4 5; do
		loaded_modules >$results.after
		grep -vxFf $results.before $results.after >$results.left || break
		sleep 0.2
	done
	umount /mnt 2>/dev/null
	if [ -s $results.left ] || [ -s modules ]; then
		for module in $(cat $results.left modules); do
			[ ! -d "/sys/module/$module" ] || rmmod "$module"
		done
	fi
	for directory in /proc/systemtap/*; do
		case "$directories" in
		*" $directory "*) ;;
		*) echo "${directory##*/} (its directory in /proc/systemtap)" ;;
		esac
	done >>$results.left
	for attempt in 1 2 3 4 5 6 7 8 9 10; do
		running_loaders >$results.loaders
		[ -s $results.loaders ] || break
		# The process that waits for a user's exit notices the end of the session only after some seconds.
		killall -q -KILL spile-attend || sleep 0.2
	done
	while read -r process command; do
		echo "(process: $command)"
		kill -KILL "$process"
	done <$results.loaders >>$results.left
	dmesg -c >$results.dmesg
	look_for_leaks >>$results.dmesg
	parts=
	for part in stdout stderr dmesg left late; do
		[ ! -s $results.$part ] || parts="$parts $part"
	done
	give_parts "$1" $parts status
	rm -f $results.*
	cd /root
	# The directory takes up the guest's memory. Probed programs have the same path as on the host, which may be in
	# /tmp.
	user=$(readlink /usr/bin/user)
	set -- "/root/t/$1"
	for file in /tmp/*; do
		case $user in
		"$file"/*) ;;
		*) set -- "$@" "$file" ;;
		esac
	done
	# Approved modules and services are removed too: the next test would find them.
	rm -rf "$@" "/lib/modules/$release/spile" /etc/spile
	! accounts_changed || accounts /run/accounts /etc
}
