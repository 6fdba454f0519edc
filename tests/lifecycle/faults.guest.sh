# Shows: each allocation and each registration of a module fails once. The module is not loaded then, or its session reports what
# failed; the kernel logs nothing, nothing is left behind, and the memory is freed.
# script: faulty -g tests/lifecycle/faults.stp
# stdout: ^failed: .*vzalloc_node
# stdout: ^failed once each: vzalloc_node register_kprobe register_kretprobe tracepoint_probe_register perf_event_create_kernel_counter nf_register_net_hook proc_create_data misc_register register_module_notifier$
# stdout: ^calls: [1-9][0-9]*$
# stdout: ^memory: freed$
# stdout: ^kernel: quiet$
# absent: nothing reported for
# limit: 400

memory_in_use() {
	echo 3 >/proc/sys/vm/drop_caches
	sleep 1
	awk '/^(Slab|VmallocUsed|Percpu):/ { sum += $2 } END { print sum }' /proc/meminfo
}

spilerun faulty.ko >/dev/null
modprobe fault && rmmod fault
before=$(memory_in_use)
dmesg -c >/dev/null
at=1
failed=
# Loaded once: its own kprobes take half of the time of a turn.
modprobe fault victim=faulty
parameters=/sys/module/fault/parameters
while echo $at >$parameters/at; do
	spilerun faulty.ko -T 1 n=0 >out 2>err || true
	calls=$(cat $parameters/calls)
	one=$(cat $parameters/failed)
	gone faulty || { echo "still there after $one"; cat err; exit 1; }
	[ -n "$one" ] || break
	case "$failed " in
	*" $one "*) ;;
	*) failed="$failed $one" ;;
	esac
	# A session that lacks something must report it. If ftrace refuses several addresses, it is given fewer, and a kprobe
	# replaces the last one: then nothing is lacking.
	[ -s err ] || grep -q '^[1-9]' out || echo "nothing reported for $one, call $at"
	at=$((at + 1))
done
rmmod fault
echo "failed:$failed"
each=
for one in vzalloc_node register_kprobe register_kretprobe tracepoint_probe_register perf_event_create_kernel_counter \
	register_wide_hw_breakpoint nf_register_net_hook proc_create_data misc_register register_module_notifier; do
	case "$failed " in
	*" $one "*) each="$each $one" ;;
	esac
done
echo "failed once each:$each"
echo "calls: $calls"
after=$(memory_in_use)
check_memory $before $after 1024
dmesg | grep -E 'WARNING|BUG|Oops|stall|soft lockup|Call Trace|leak' || echo kernel: quiet
