# Shows: a kprobe that the kernel does not disable. Switched off by a user, its hits are turned away all the same, until it is switched on
# again; one whose condition is false is disabled a second later.
# script: refused tests/lifecycle/disable_refused.stp
# stdout: ^before: 1 1$
# stdout: ^not disabled: disable_kprobe$
# stdout: ^switched off: 1 2$
# stdout: ^switched on: 2 3$
# stdout: ^not disabled: disable_kprobe$
# stdout: ^hits of the other, now and later: 1 0$
# limit: 60

# hits: of the second probe, whether or not its handler ran.
hits() { spilerun status refused --json | tr '{' '\n' | grep cmdline_proc_show | sed -n 's/.*"hits":\([0-9]*\).*/\1/p'; }
what() {
	cat /proc/version /proc/cmdline >/dev/null
	cat /proc/systemtap/refused/counts
}
# Makes the next call fail.
refuse() { echo 1 >/sys/module/fault/parameters/at; }
refused() {
	for tenth in $(seq $((100 * PATIENCE))); do
		[ -z "$(cat /sys/module/fault/parameters/failed)" ] || break
		pause 0.1
	done
	echo "not disabled: $(cat /sys/module/fault/parameters/failed)"
}

modprobe fault victim=refused only=disable_kprobe
start_armed refused ready
echo "before: $(what)"
refuse
spilerun disable refused 1
refused
echo "switched off: $(what)"
spilerun enable refused 1
echo "switched on: $(what)"

before=$(hits)
refuse
echo 0 >/proc/systemtap/refused/wanted
refused
cat /proc/cmdline >/dev/null
now=$(hits)
sleep 3
later=$(hits)
cat /proc/cmdline >/dev/null
echo "hits of the other, now and later: $((now - before)) $(($(hits) - later))"
stop
rmmod fault
