# Shows: a call whose return could not be hooked is one hit and one miss in all statistics: the row of --stats, its JSON, and the
# line at the end, which as staprun is SystemTap's; with and without a value saved at the entry. The count agrees with a probe at the
# function's entry.
# script: sleepers --stats=json tests/guard/returns_missed.stp
# stdout: ^entry: all handled; return: as many hits, 5 or more missed, the others handled$
# stdout: ^with an entry value: as many hits, 5 or more missed, the others handled$
# stdout: ^the report has the sum$
# stdout: ^the table agrees$
# stdout: ^as staprun: WARNING: Number of errors: 0, skipped probes: [1-9][0-9]*$

# asleep PROCESS: waits until it is in pause() (system call 34). On 5.10 /proc/PID/wchan has no names.
asleep() {
	for attempt in $(seq $((100 * PATIENCE))); do
		! grep -q '^34 ' "/proc/$1/syscall" || return 0
		pause 0.1
	done
	return 1
}
# Six calls that are under way together, and end.
sleep_at_once() {
	sleepers=
	for one in 1 2 3 4 5 6; do
		abuse deep 1 >/dev/null &
		sleepers="$sleepers $!"
	done
	for one in $sleepers; do
		asleep "$one"
	done
	kill $sleepers
	for one in $sleepers; do
		wait "$one" || true
	done
}
# number COUNTER PROBE: the value in the JSON line.
number() { sed 's/{"point"/\n{/g' sleepers.err | grep ":$2:" | grep -o "\"$1\":[0-9]*" | head -n 1 | cut -d: -f2; }

start sleepers began --stats=json
armed sleepers
sleep_at_once
stop INT
calls=$(number hits 5)
# judge LINE: the verdict on the probe at that line.
judge() {
	hits=$(number hits $1) handled=$(number handled $1) missed=$(number returns_missed $1)
	if [ "$hits" = "$calls" ] && [ "$missed" -ge 5 ] && [ $((handled + missed)) = "$hits" ]; then
		echo 'as many hits, 5 or more missed, the others handled'
	else
		echo "of $calls calls $hits hits, $handled handled, $missed missed"
	fi
}
[ "$(number handled 5)" = "$calls" ] && echo "entry: all handled; return: $(judge 6)"
echo "with an entry value: $(judge 7)"
# Including begin and end.
sum=$((3 * calls + 2)) missed=$(($(number returns_missed 6) + $(number returns_missed 7)))
if grep -qF "of $sum hits were missed: $missed (returns missed" sleepers.err; then
	echo 'the report has the sum'
else
	cat sleepers.err
fi
start sleepers began --stats
armed sleepers
sleep_at_once
stop INT
grep '__do_sys_pause.*\.return' sleepers.err | awk '$1 == $2 + $3 && $3 >= 5 { same++ } END { print same == 2 ? "the table agrees" : "the table differs" }'
gone sleepers

mkdir bin
ln -s "$(command -v spilerun)" bin/staprun
PATH=$PWD/bin:$PATH
staprun sleepers.ko >out 2>staprun.err &
loader=$!
wait_for out began
armed sleepers
sleep_at_once
stop INT
sed 's/^/as staprun: /' staprun.err
