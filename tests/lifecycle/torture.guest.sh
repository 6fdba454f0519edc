# Shows: a minute of everything at once on two CPUs: all kinds of probes at hot functions, full maps, prints, CPU hotplug, a
# probed module loaded and unloaded, sessions that end, are interrupted and are killed. The kernel logs nothing, nothing is left
# behind, and the memory is freed. With SPILE_TEST_SECONDS=600 in the environment of cargo xtask test it runs for that long.
# script: torture -DMAXMAPENTRIES=64 -DMAXERRORS=1000000000 -DMAXSKIPPED=1000000000 -DSTP_NO_OVERLOAD tests/lifecycle/torture.stp
# script: exact tests/lifecycle/torture_exact.stp
# stdout: ^sessions: [1-9][0-9]*$
# stdout: ^exact: yes$
# stdout: ^memory: freed$
# stdout: ^kernel: quiet$
# limit: 200

# KB used by the kernel. Free memory on per-CPU lists counts as used, so this is measured after a pause.
memory_in_use() {
	sync
	echo 3 >/proc/sys/vm/drop_caches
	sleep 1
	awk '/^(Slab|VmallocUsed|Percpu):/ { sum += $2 } END { print sum }' /proc/meminfo
}

busy() {
	while [ ! -f over ]; do
		dd if=/dev/zero of=/dev/null bs=1 count=2000 2>/dev/null
		ls -R /sys/module >/dev/null
	done
}
plug() {
	while [ ! -f over ]; do
		echo 0 >/sys/devices/system/cpu/cpu1/online
		sleep 0.7
		echo 1 >/sys/devices/system/cpu/cpu1/online
		sleep 1
	done
}
reload() {
	while [ ! -f over ]; do
		mount_lustre && getfattr -n user.job /mnt/file >/dev/null 2>&1
		sleep 0.3
		umount /mnt
		# A session that places probes in it has a reference for a moment.
		tries=0
		until rmmod lustre 2>/dev/null || [ $((tries += 1)) -gt 50 ]; do
			pause 0.1
		done
	done
}
# Repeatedly: the first may be sent before the loader handles it (a shell's children ignore INT); the second drops output.
end_by() {
	while kill -s $1 $loader 2>/dev/null; do
		sleep 0.5
	done
}
# Once before the measurement, for allocations that the kernel makes only once.
spilerun torture.ko -T 2 >/dev/null 2>&1
spilerun exact.ko -c 'dd if=/dev/zero of=/dev/null bs=3 count=10' >/dev/null 2>&1
mount_lustre && umount /mnt && rmmod lustre
before=$(memory_in_use)
dmesg -c >/dev/null

busy & busy & plug & reload &
sessions=0
end=$(($(date +%s) + ${SPILE_TEST_SECONDS:-60}))
while [ "$(date +%s)" -lt $end ]; do
	spilerun torture.ko -s 1 >out 2>err &
	loader=$!
	sleep 0.$((1 + sessions % 9))
	case $((sessions % 4)) in
	0) end_by INT ;;
	1) sleep 1; end_by TERM ;;
	2) end_by KILL ;;
	3) sleep 2; end_by INT ;;
	esac
	wait $loader || true
	sessions=$((sessions + 1))
done
touch over
wait
echo sessions: $sessions
spilerun exact.ko -c 'for i in 1 2 3 4; do dd if=/dev/zero of=/dev/null bs=3 count=20000 2>/dev/null & done; wait' >exact.out 2>exact.err
# A virtual CPU can stall for longer than the lock timeout: the missed hits are reported, and nothing else is missing.
missed=$(sed -n 's/.* hits were missed: \([0-9]*\) .*/\1/p' exact.err)
awk -v missed=${missed:-0} 'NF == 6 && missed < 100 && 320000 - $1 - $2 - $3 - $5 == missed && $4 == 3 * $3 && $6 == 3 * $5 { found = 1 }
	END { exit !found }' exact.out && echo exact: yes || cat exact.out exact.err
# A killed loader's module is removed by the next start.
spilerun -d '*' 2>/dev/null || true
gone torture
gone exact
after=$(memory_in_use)
check_memory $before $after 2048
dmesg | grep -E 'WARNING|BUG|Oops|stall|soft lockup|Call Trace|leak' || echo kernel: quiet
