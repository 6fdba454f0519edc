# Shows: calls that do not return, because their task ends, is killed, runs another program, is another one's child in the same memory,
# or jumps out of them; a debugger, strace and a filter of system calls on the same process; hundreds of processes
# (thousands with --all) that have the probes when a session begins and ends: the counts are right, and the programs are not harmed.
# script: abuse calls_without_return.stp
# stdout: ^all as expected$
# limit: 120

start_all abuse
for word in exit kill exec vfork clone threads signals deep seccomp trace; do
	abuse $word >$word.log 2>&1 || { echo "$word: status $?"; failed=1; }
	grep -qx "$word: fine" $word.log || { cat $word.log; failed=1; }
done
strace -f -o /dev/null abuse leaf || { echo "under strace: $?"; failed=1; }
kill -INT $loaders
wait $loaders || true
failed=${failed:-}
# counted WORD FUNCTION CALLS/RETURNS
counted() { shows abuse "^$1 $2 $3\$"; }
counted exit within 50/0
counted kill within 50/0
counted exec within 50/0
counted leaf within 51/51
counted leaf leaf 51/51
counted vfork within 100/50
counted vfork leaf 100/100
counted clone within 150/100
counted clone leaf 50/50
counted threads within 50/0
counted signals within 51/1
counted signals leaf 51/51
# The kernel hooks 64 pending returns of a task, the outermost ones.
counted deep deep 542/105
counted seccomp within 1/1
counted trace within 1/1
counted trace leaf '(1/1|2/2)'
! grep wrong abuse.out || failed=1

# Sessions that begin and end while the programs run.
crowd=400
[ -z "$SPILE_TEST_ALL" ] || crowd=2000
abuse crowd $crowd >crowd.log 2>&1 &
parent=$!
wait_for crowd.log 'crowd: ready' 60
abuse busy &
busy=$!
abuse busy &
busy="$busy $!"
for signal in INT KILL INT; do
	loaders=
	start_all abuse
	sleep 1
	kill -$signal $loaders
	wait $loaders || true
	# The next loader removes the module of a killed one.
	[ $signal = KILL ] || unloaded abuse || failed=1
done
shows abuse '^busy within [1-9][0-9]+/[1-9][0-9]*$'
shows abuse '^crowd within [1-9][0-9]*/[0-9]+$'
alive=$(named abuse | wc -l)
[ $alive = $((crowd + 3)) ] || { echo "$alive processes are left of $((crowd + 3))"; failed=1; }
kill -KILL $busy $parent
wait $parent $busy 2>/dev/null || true
[ -n "$failed" ] || echo all as expected
