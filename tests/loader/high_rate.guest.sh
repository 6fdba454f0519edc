# Shows: with default buffers no line is lost at the highest rate that this machine drains; at ten times that rate lines are lost
# and counted exactly, and the machine stays responsive. The end probe's line is printed although the reader sleeps when the rings
# are full. With SPILE_TEST_SECONDS=60 in the environment of cargo xtask test the rate is held for that long.
# script: rate -DMAXACTION=100000 rate.stp
# script: storm -DSTP_NO_OVERLOAD -DMAXSKIPPED=1000000000 high_rate.stp
# limit: 400
# alone: yes
# stdout: ^steady: none lost$
# stdout: ^storm: ten times too much, adds up$
# stdout: ^responsive$

seconds=${SPILE_TEST_SECONDS:-5}
# 100,000 lines per second, or fewer if that is too much for the machine.
for rate in 100000 50000 20000 10000 5000 2000; do
	spilerun rate.ko rate=$rate seconds=$seconds -o out 2>err
	lost=$(sed -n 's/^WARNING: \([0-9]*\) records were lost.*/\1/p' err | tail -n 1)
	printed=$(grep -c '^line' out)
	tail -n 1 out | sed "s/^/$rate lines a second: /; s/\$/, ${lost:-0} lost/" >&2
	grep -q "^written $((printed + ${lost:-0})) " out || { echo "$printed printed, ${lost:-0} lost"; tail -n 1 out; exit 1; }
	[ -n "$lost" ] || break
done
[ -z "$lost" ] && echo steady: none lost

# ten_sleeps: the seconds that they take, each with a new process.
ten_sleeps() {
	read -r begun rest </proc/uptime
	for turn in $(seq 10); do sleep 0.1; ls / >/dev/null; done
	read -r ended rest </proc/uptime
	echo $((${ended%.*} - ${begun%.*}))
}
begin_work() {
	for worker in 1 2; do
		dd if=/dev/zero of=/dev/null bs=1 count=1000000000 2>/dev/null &
		workers="$workers $!"
	done
}
end_work() {
	kill $workers
	wait $workers || true
	workers=
}

# Beside the same work without the session.
begin_work
usual=$(ten_sleeps)
end_work
# It ends when enough has been written. Its reader takes 60 pieces, and the rest when it has ended.
spilerun storm.ko 2>err | (for turn in $(seq 60); do dd bs=4k count=1 2>/dev/null; sleep 0.1; done; until [ -e over ]; do sleep 0.5; done; sleep 3; cat) >out &
reader=$!
armed storm
begin_work
took=$(ten_sleeps)
while spilerun status storm | grep -q ': running, '; do sleep 1; done
touch over
end_work
wait $reader
lost=$(sed -n 's/^WARNING: \([0-9]*\) records were lost.*/\1/p' err | tail -n 1)
printed=$(grep -c '^line' out)
written=$(sed -n 's/^written //p' out)
if [ "$((printed + lost))" = "$written" ] && [ "$written" -ge "$((printed * 10))" ]; then
	echo storm: ten times too much, adds up
else
	echo "storm: printed $printed, lost $lost, written $written"
fi
echo "storm: printed $printed, lost $lost, written $written; ten sleeps of 0.1 s took $took s, $usual without it" >&2
[ "$took" -lt $((15 * SLOWNESS)) ] || [ "$took" -lt $((5 * usual)) ] && echo responsive || echo "$took s for ten sleeps of 0.1 s, $usual without the session"
