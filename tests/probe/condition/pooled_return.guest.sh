# Shows: a return that shares a kretprobe with others, whose condition changes: it is hooked, not hooked, and hooked again where another
# probe of the function has come first, for which fewer registers are saved.
# script: pooled tests/probe/condition/pooled_return.stp
# stdout: ^both: 1 1$
# stdout: ^none: 1 1$
# stdout: ^the entry: 2 1$
# stdout: ^both again: 3 2$
# stdout: ^the return: 3 3$
# limit: 60

# turn ENTRY RETURN: sets the conditions, and reads the file when the probes have been turned.
turn() {
	echo $1 >/proc/systemtap/pooled/entry
	echo $2 >/proc/systemtap/pooled/return
	sleep 1
	cat /proc/version >/dev/null
	cat /proc/systemtap/pooled/counts
}

start_armed pooled ready
echo "both: $(turn 1 1)"
echo "none: $(turn 0 0)"
echo "the entry: $(turn 1 0)"
echo "both again: $(turn 1 1)"
echo "the return: $(turn 0 1)"
stop
