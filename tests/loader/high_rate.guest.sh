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

# A slow kernel writes fewer per second, and its reader takes fewer.
pause=$(awk "BEGIN { print 0.1 * $SLOWNESS }")
spilerun storm.ko -T $((6 * SLOWNESS)) 2>err | (for turn in $(seq 60); do dd bs=4k count=1 2>/dev/null; sleep $pause; done; sleep 3; cat) >out &
reader=$!
sleep 1
for worker in 1 2; do
	(dd if=/dev/zero of=/dev/null bs=1 count=100000000 2>/dev/null & echo $! >>workers)
done
begun=$(cut -d . -f 1 /proc/uptime)
for turn in $(seq 10); do sleep 0.1; ls / >/dev/null; done
took=$(($(cut -d . -f 1 /proc/uptime) - begun))
sleep $((3 * SLOWNESS))
kill $(cat workers)
wait $reader
lost=$(sed -n 's/^WARNING: \([0-9]*\) records were lost.*/\1/p' err | tail -n 1)
printed=$(grep -c '^line' out)
written=$(sed -n 's/^written //p' out)
if [ "$((printed + lost))" = "$written" ] && [ "$written" -ge "$((printed * 10))" ]; then
	echo storm: ten times too much, adds up
else
	echo "storm: printed $printed, lost $lost, written $written"
fi
echo "storm: printed $printed, lost $lost, written $written; ten sleeps of 0.1 s took $took s" >&2
[ "$took" -lt $((15 * SLOWNESS)) ] && echo responsive || echo "$took s for ten sleeps of 0.1 s"
