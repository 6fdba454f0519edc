# Shows: ^C ends a loader that counts hits for a budget, although the kernel takes as long as it likes for one kprobe.
# script: held tests/probe/many/held.stp
# stdout: ^ended 0, held, disarming, removed, 1 notice$
# limit: 60

modprobe fault victim=held held=register_kprobe
holding() { cat /sys/module/fault/parameters/holding; }
spilerun held.ko --budget 2 2>err &
loader=$!
for tenth in $(seq $((300 * PATIENCE))); do [ "$(holding)" != 1 ] || break; pause 0.1; done
# If the loader waits for the step, the step ends some time, and the test fails.
(sleep $((30 * PATIENCE)); [ "$(holding)" != 1 ] || echo 1 >/sys/module/fault/parameters/released) &
watchdog=$!
stop INT
state="$([ "$(holding)" = 1 ] && echo held || echo over), $(spilerun status held | sed -n 's/.*: \(disarming\), .*/\1/p')"
kill $watchdog
echo 1 >/sys/module/fault/parameters/released
removed held
rmmod fault
echo "ended $status, $state, removed, $(grep -c 'NOTICE: interrupted before the script ran$' err) notice"
grep -v 'in the background\|interrupted: \|NOTICE: interrupted before the script ran$' err >&2 || true
