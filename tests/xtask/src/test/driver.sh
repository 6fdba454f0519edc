# Runs the tests of one guest. Sourced by the guest's script, which then calls run_test for each.
# /root/t/N/ is the directory of test number N: command (what to run), setup, modules, limit, random (whether programs have
# random addresses: 2 or 0).
# Returns to the host N.all: a line with the exit status and the sizes of the parts that follow it, which are the test's
# standard output and error, the kernel's messages, what is left behind, and "late" if the test was killed.

# A process takes six milliseconds in an emulated guest, so this starts few: builtins do what they can.

# Directories of procfs probes: those of unloaded modules should be removed too.
session_directories() { echo " $(echo /proc/systemtap/*) "; }

loaded_modules() { cut -d' ' -f1 /proc/modules; }

# Programs of all processes.
programs() { ls -ln /proc/[0-9]*/exe 2>/dev/null; }

# Loaders still running, also those that a test copied to another name: "PID COMMAND".
running_loaders() {
	case $(programs) in
	*/spilerun* | */suid*) ;;
	*) return ;;
	esac
	programs | while read -r entry; do
		case $entry in
		*" -> "*/spilerun | *" -> "*/spilerun-* | *" -> "*/suid*)
			process=${entry##* /proc/}
			process=${process%%/exe*}
			echo "$process $(tr '\0' ' ' <"/proc/$process/cmdline")"
			;;
		esac
	done 2>/dev/null
}

# The users and groups.
accounts() {
	cat /etc/passwd
	echo groups:
	cat /etc/group
} 2>/dev/null

# Those that a test has added are removed: the next one would add them again.
restore_accounts() {
	for file in passwd group; do
		if [ -f /run/accounts/$file ]; then cat /run/accounts/$file >/etc/$file; else rm -f /etc/$file; fi
	done
}

# remove MODULE: unloads it, and prints why if it stays in use. What uses it may end in the background: a killed process, a lazy unmount.
remove() {
	for attempt in $TURNS; do
		# Not there for what is built into the kernel, as fuse in 7.3.
		[ -e "/sys/module/$1/initstate" ] || return
		reason=$(rmmod "$1" 2>&1) && return
		read -r -t 0.2 nothing <>/run/nothing
	done
	echo "$1, which cannot be unloaded: $reason"
}

# idle_for SECONDS: the CPUs have been idle for as long, together, since the shell read $idle in /proc/uptime. What should have ended and still
# waits is reported then; on a busy machine it has more time.
idle_for() {
	read -r up idle_now </proc/uptime
	[ $((${idle_now%.*} - ${idle%.*})) -ge "$1" ]
}

# Reports to the host that the first test starts.
begin_tests() {
	mkdir -p /run/results /run/accounts
	for file in passwd group; do
		[ ! -f /etc/$file ] || cp /etc/$file /run/accounts
	done
	accounts=$(accounts)
	mkfifo /run/nothing
	# For what ends in the background, every 0.2 s: only a test that fails waits for all of them.
	TURNS=$(seq 100)
	release=$(uname -r)
	# Probed programs have the same path as on the host, which may be in /tmp.
	user=$(readlink /usr/bin/user)
	before=$(loaded_modules)
	dmesg -c >/dev/null
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
	read -r -t "$1" nothing <>/run/nothing
	echo late >$results.late
	kill -s INT -- "-$(cat $results.pid)"
	sleep 10
	kill -s KILL -- "-$(cat $results.pid)"
}

# give_all NUMBER STATUS: sends the test's results to the host.
give_all() {
	give_name=$1.all
	give_header=$2
	set -- $results.stdout $results.stderr $results.dmesg $results.left $results.late
	give_bytes=0
	for size in $(stat -c %s "$@"); do
		give_header="$give_header $size"
		give_bytes=$((give_bytes + size))
	done
	{
		echo "file $give_name $((give_bytes + ${#give_header} + 1))"
		echo "$give_header"
		cat "$@"
	} >/dev/ttyS3
}

run_test() {
	cd "/root/t/$1" || return
	results=/run/results/$1 wanted=
	: >$results.late
	read -r random <random
	echo "$random" >/proc/sys/kernel/randomize_va_space
	if [ -s modules ]; then
		for module in $(cat modules); do
			modprobe "$module"
			wanted="$module $wanted"
		done
		before=$(loaded_modules)
		dmesg -c >/dev/null
	fi
	directories=$(session_directories)

	: >$results.stdout
	: >$results.stderr
	if [ ! -s setup ] || sh ./setup </dev/null >$results.setup 2>&1; then
		read -r limit <limit
		watch_over "$limit" >/dev/null 2>&1 &
		watcher=$!
		results=$results setsid sh -c 'echo $$ >"$results.pid"; unset results; . ./command' </dev/null >>$results.stdout 2>>$results.stderr
		status=$?
		kill $watcher
	else
		{ echo "setup failed:"; cat $results.setup; } >>$results.stderr
		status=255
	fi

	# A module being unloaded may still be on the list.
	read -r up idle </proc/uptime
	for attempt in $TURNS; do
		: >$results.left
		after=$(loaded_modules)
		[ "$after" != "$before" ] || break
		echo "$before" >$results.before
		echo "$after" | grep -vxF -e '' -f $results.before >$results.left || break
		! idle_for 3 || break
		sleep 0.2
	done
	while read -r device place rest; do
		[ "$place" != /mnt ] || { umount /mnt; break; }
	done </proc/mounts 2>/dev/null
	if [ -s $results.left ] || [ -n "$wanted" ]; then
		# Those that were loaded last may use the others.
		for module in $(cat $results.left) $wanted; do
			remove "$module"
		done >>$results.left
		after=$(loaded_modules)
	fi
	before=$after
	for directory in /proc/systemtap/*; do
		case "$directories" in
		*" $directory "*) ;;
		*) echo "${directory##*/} (its directory in /proc/systemtap)" ;;
		esac
	done >>$results.left
	read -r up idle </proc/uptime
	for attempt in $TURNS; do
		running_loaders >$results.loaders
		[ -s $results.loaders ] || break
		! idle_for 6 || break
		# The process that waits for a user's exit notices the end of the session only after some seconds.
		killall -q -KILL spile-attend || sleep 0.2
	done
	while read -r process command; do
		echo "(process: $command)"
		kill -KILL "$process"
	done <$results.loaders >>$results.left
	# What the test has left in the background would be there for the next one: a session goes on while its user has a process.
	[ ! -s $results.pid ] || { read -r group <$results.pid; kill -s KILL -- "-$group"; } 2>/dev/null
	dmesg -c >$results.dmesg
	look_for_leaks >>$results.dmesg
	give_all "$1" $status
	cd /root
	# The directory takes up the guest's memory.
	set -- "/root/t/$1"
	for file in /tmp/*; do
		case $user in
		"$file"/*) ;;
		*) set -- "$@" "$file" ;;
		esac
	done
	# Approved modules and services are removed too: the next test would find them.
	rm -rf $results.* "$@" "/lib/modules/$release/spile" /etc/spile
	[ "$(accounts)" = "$accounts" ] || restore_accounts
}
