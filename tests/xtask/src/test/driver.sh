# Runs the tests of one guest. Sourced by the guest's script, which then calls run_test for each.
# /root/t/N/ is the directory of test number N: command (what to run), setup, modules, limit.
# Returns to the host N.stdout, N.stderr, N.dmesg, N.left, N.late (not empty: it was killed) and, last, N.status.

# Directories of procfs probes: those of unloaded modules should be removed too.
session_directories() { ls /proc/systemtap 2>/dev/null | sort; }

loaded_modules() { cut -d' ' -f1 /proc/modules | sort; }

# Loaders still running, also those that a test copied to another name. The process that waits for a user's exit notices
# the end of the session only after some seconds.
running_loaders() {
	killall -q -KILL spile-attend
	for process in /proc/[0-9]*; do
		case "$(readlink "$process/exe")" in
		*/spilerun | */spilerun-* | */suid*) echo "${process#/proc/} $(tr '\0' ' ' <"$process/cmdline")" ;;
		esac
	done 2>/dev/null
}

# Removes users and groups that a test has added: the next one would add them again.
accounts() {
	for file in passwd group; do
		if [ -f "$1/$file" ]; then cat "$1/$file" >"$2/$file"; else rm -f "$2/$file"; fi
	done
}

# Reports to the host that the first test starts.
begin_tests() {
	mkdir -p /run/results /run/accounts
	accounts /etc /run/accounts
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

run_test() {
	cd "/root/t/$1" || return
	results=/run/results/$1
	mkdir -p /run/results
	: >$results.late
	for module in $(cat modules); do modprobe "$module"; done
	loaded_modules >$results.before
	session_directories >$results.directories
	dmesg -c >/dev/null

	: >$results.stdout
	: >$results.stderr
	if sh ./setup </dev/null >$results.setup 2>&1; then
		watch_over "$(cat limit)" >/dev/null 2>&1 &
		watcher=$!
		sh -c 'echo $$ >$0.pid; exec setsid sh ./command' $results </dev/null >>$results.stdout 2>>$results.stderr
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
	for module in $(cat $results.left modules); do
		[ ! -d "/sys/module/$module" ] || rmmod "$module"
	done
	for name in $(session_directories); do
		grep -qxF "$name" $results.directories || echo "$name (its directory in /proc/systemtap)"
	done >>$results.left
	for attempt in 1 2 3 4 5 6 7 8 9 10; do
		running_loaders >$results.loaders
		[ -s $results.loaders ] || break
		sleep 0.2
	done
	while read -r process command; do
		echo "(process: $command)"
		kill -KILL "$process"
	done <$results.loaders >>$results.left
	dmesg -c >$results.dmesg
	look_for_leaks >>$results.dmesg
	for part in stdout stderr dmesg left late status; do
		give $results.$part "$1.$part"
	done
	rm -f $results.*
	cd /root
	# The directory takes up the guest's memory. Probed programs have the same path as on the host, which may be in
	# /tmp.
	rm -rf "/root/t/$1"
	for file in /tmp/*; do
		case $(readlink /usr/bin/user) in
		"$file"/*) ;;
		*) rm -rf "$file" ;;
		esac
	done
	# Approved modules and services are removed too: the next test would find them.
	rm -rf "/lib/modules/$(uname -r)/spile" /etc/spile
	accounts /run/accounts /etc
}
