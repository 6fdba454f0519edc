# Shows: a CPU goes offline and comes back ten times while handlers on both CPUs use globals of each kind: numbers, counted,
# striped, wrapping and whole arrays, aggregates, prints. All totals are exact, nothing is skipped or lost.
# script: going -DSTP_NO_OVERLOAD -DTRYLOCKDELAY=1000000 tests/lifecycle/cpus_come_and_go.stp
# prints: exact: yes of 40000
# prints: lines: 400
# prints: missed: nothing
# limit: 180
cat >load <<'END'
for worker in 1 2; do dd if=/dev/zero of=/dev/null bs=1 count=20000 2>/dev/null & done
for time in 1 2 3 4 5 6 7 8 9 10; do
	echo 0 >/sys/devices/system/cpu/cpu1/online
	usleep 100000
	echo 1 >/sys/devices/system/cpu/cpu1/online
	usleep 100000
done
wait
END
spilerun going.ko -c 'sh load' >out 2>err || { cat out err; exit 1; }
grep '^exact' out
echo "lines: $(grep -c '^line' out)"
if grep -q 'missed\|lost\|skipped\|WARNING' err; then cat err; else echo "missed: nothing"; fi
gone going
