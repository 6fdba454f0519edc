# Shows: thousands of functions are disarmed in steps: what needs the session's lock comes between two of them, here a module that is
# loaded while ftrace is busy with the first step. It goes on while there are thousands left.
# Older kernels have no ftrace_set_filter_ips().
# guest: 6.1 6.12 7.3
# family: yes
# script: functions functions.stp
# stdout: ^in the first step: disarming, thousands left$
# stdout: ^fam19 is loaded: disarming, thousands left$
# stdout: ^removed after many steps$
# stdout: ^left: 0$
# limit: 120

for child in $(seq 11 18); do modprobe fam$child; done
parameter() { cat /sys/module/fault/parameters/$1; }
# disarming, and how many are left
state() {
	spilerun status functions | sed -n 's/.*: \(disarming\), .*/\1/p; s/^\([0-9]*\) of .* still to be disarmed/\1/p' | xargs |
		sed 's/ [0-9]\{4,\}$/, thousands left/'
}
start_armed functions began
modprobe fault victim=functions held=ftrace_set_filter_ips
stop INT
for tenth in $(seq $((300 * PATIENCE))); do [ "$(parameter holding)" != 1 ] || break; sleep 0.1; done
echo "in the first step: $(state)"
modprobe fam19 &
loading=$!
# It waits, without an end by signals.
for tenth in $(seq $((300 * PATIENCE))); do ! grep -q '^State:.D' /proc/$loading/status || break; sleep 0.1; done
echo 1 >/sys/module/fault/parameters/released
wait $loading
echo "fam19 is loaded: $(state)"
removed functions
[ "$(parameter calls)" -lt 4 ] || echo removed after many steps
rmmod fault
grep -v 'in the background\|interrupted: \|are prepared after' functions.err >&2 || true
echo "left: $(grep -c '\[fam[0-9]*\]' /sys/kernel/debug/tracing/enabled_functions || true)"
unload_family
