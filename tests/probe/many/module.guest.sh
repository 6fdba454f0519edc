# Shows: the functions of a module and their returns are armed together, if the module is loaded already and when it is loaded
# later; it can be unloaded and loaded again meanwhile.
# script: functions tests/probe/many/module.stp
# modules: xfs
# stdout: ^functions: [0-9]{4}$
# stdout: ^left: 0$
# stdout: ^first: [1-9][0-9]* [1-9][0-9]*$
# stdout: ^then: more, more$
# stdout: ^unarmed: 0$
# stdout: ^kernel: quiet$
# limit: 300

probed() { grep -c '\[xfs\]' /sys/kernel/debug/tracing/enabled_functions || true; }

start functions began
armed functions
echo "functions: $(probed)"
cat /proc/fs/xfs/stat >/dev/null
wait_for functions.out 'so far'
cat /proc/fs/xfs/stat >/dev/null
rmmod xfs
echo "left: $(probed)"
modprobe xfs
cat /proc/fs/xfs/stat >/dev/null
stop INT
removed functions
awk '/so far/ { entries[++n] = $4; returns[n] = $6 }
	END {
		print "first: " entries[2] " " returns[2]
		print "then: " (entries[n] > entries[2] ? "more" : "none") ", " (returns[n] > returns[2] ? "more" : "none")
	}' functions.out
echo "unarmed: $(grep -c 'registration error' functions.err)" || true
dmesg | grep -E 'WARNING|BUG|Oops|Call Trace' || echo kernel: quiet
