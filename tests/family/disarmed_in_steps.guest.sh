# Shows: thousands of functions are disarmed in steps: what needs the session's lock comes between two of them, here a module that is
# loaded while ftrace is busy with the first step.
# Older kernels have no ftrace_set_filter_ips().
# guest: 6.1 6.12 7.3
# family: yes
# script: functions functions.stp
# stdout: ^in the first step: disarming, thousands left$
# stdout: ^removed after many steps$
# stdout: ^fam19 was loaded between the first step and the last$
# stdout: ^left: 0$
# limit: 120

for child in $(seq 10 18); do modprobe fam$child; done
parameter() { cat /sys/module/fault/parameters/$1; }
# disarming, and how many are left
state() {
	spilerun status functions | sed -n 's/.*: \(disarming\), .*/\1/p; s/^\([0-9]*\) of .* still to be disarmed/\1/p' | xargs |
		sed 's/ [0-9]\{4,\}$/, thousands left/'
}
start_armed functions began
modprobe fault victim=functions held=ftrace_set_filter_ips loads=fam19
stop INT
for tenth in $(seq $((300 * PATIENCE))); do [ "$(parameter holding)" != 1 ] || break; pause 0.1; done
echo "in the first step: $(state)"
modprobe fam19 &
loading=$!
# Until it waits in the session's module; fam10, which it needs, is there.
for tenth in $(seq $((300 * PATIENCE))); do ! grep -q '\[functions\]' /proc/$loading/stack || break; pause 0.1; done
echo 1 >/sys/module/fault/parameters/released
wait $loading
removed functions
calls=$(parameter calls) loaded=$(parameter calls_at_load)
[ $calls -lt 4 ] || echo removed after many steps
[ $loaded -lt 1 ] || [ $loaded -ge $calls ] || echo fam19 was loaded between the first step and the last
echo "steps: $calls, at the load $loaded"
rmmod fault
grep -v 'in the background\|interrupted: \|are prepared after' functions.err >&2 || true
echo "left: $(grep -c '\[fam[0-9]*\]' /sys/kernel/debug/tracing/enabled_functions || true)"
unload_family
