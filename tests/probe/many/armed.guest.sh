# Shows: thousands of probes are armed together and disarmed together, entries in about the time of one. The times are
# printed; a return costs the kernel a kprobe, so there are fewer of them, and the limit is that of a busy machine.
# script: entries tests/probe/many/entries.stp
# script: returns tests/probe/many/returns.stp
# stdout: ^entries: thousands$
# stdout: ^hits 1$
# stdout: ^entries: quick to arm, quick to disarm$
# stdout: ^hits 1$
# stdout: ^returns: quick to arm, quick to disarm$
# limit: 120

# Seconds since boot, in hundredths.
now() { cut -d' ' -f1 /proc/uptime | tr -d .; }
# verdict NAME START ARMED STOPPED
verdict() {
	arm=$(($3 - $2)) disarm=$(($4 - $3))
	cat $1.err >&2
	echo "$1: $((arm * 10)) ms to load and arm, $((disarm * 10)) ms to disarm and unload" >&2
	most=$((3000 * SLOWNESS))
	# In steps that let other tasks run, after a tenth of a second of counting: a third slower than all at once (6 s,
	# emulated).
	[ $1 = returns ] || most=$((2000 * SLOWNESS))
	quick() { [ "$1" -lt $most ] && echo quick || echo "slow ($1)"; }
	echo "$1: $(quick $arm) to arm, $(quick $disarm) to disarm"
}
# Our own small kernel has fewer functions.
thousands() {
	probes=$(wc -l </sys/kernel/debug/tracing/enabled_functions)
	[ "$probes" -ge $((SLOWNESS > 1 ? 2000 : 3000)) ] && echo "entries: thousands" || echo "entries: $probes probes"
}
measure() {
	begun=$(now)
	start $1 began
	# Polling more often would take CPU time from the measured work.
	until spilerun status $1 2>/dev/null | grep -q ': running, '; do sleep 1; done
	there=$(now)
	[ $1 = returns ] || thousands
	cat /proc/version >/dev/null
	begin_stop=$(now)
	kill -INT $loader
	wait $loader
	# Thousands are disarmed in the background.
	removed $1
	cat $1.out | grep hits
	verdict $1 $begun $there $(( $(now) - begin_stop + there ))
}
measure entries
measure returns
