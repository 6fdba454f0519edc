# Shows: aliases of interrupts, switches, faults, forks, packets and disks agree with the kernel's own counters, read before and
# after.
# modules: sd_mod scsi_debug
# script: counters tests/tapset/counters.stp
# stdout: ^all as expected$
# limit: 120

ifconfig lo 127.0.0.1 up
echo 1 >/proc/sys/kernel/sched_schedstats
# A task for the comparison of per-task counters.
load sleep 100000 &
sleeper=$!
disk=/sys/block/sda

# NAME VALUE of each counter. /proc/softirqs and interrupts: the sum over the CPUs.
counters() {
	awk '$1 == "TIMER:" || $1 == "NET_RX:" { all = 0; for (i = 2; i <= NF; i++) all += $i; print $1 == "TIMER:" ? "timer" : "net_rx", all }' /proc/softirqs
	awk '$1 == "4:" { all = 0; for (i = 2; i <= NF && $i ~ /^[0-9]+$/; i++) all += $i; print "irqs", all }' /proc/interrupts
	awk '$1 == "ctxt" { print "switches", $2 } $1 == "processes" { print "forks", $2 }' /proc/stat
	awk '$1 == "pgfault" { print "faults", $2 }' /proc/vmstat
	awk '$1 == "lo:" { print "received", $3; print "sent", $11 }' /proc/net/dev
	awk '$1 == "Udp:" && $2 ~ /^[0-9]+$/ { print "datagrams", $5 }' /proc/net/snmp
	# The sixth number of each CPU counts wake-ups (Documentation/scheduler/sched-stats.rst).
	awk '/^cpu/ { all += $6 } END { print "wakeups", all }' /proc/schedstat
	awk '/ctxt_switches/ { all += $2 } END { print "sleeper_switches", all }' /proc/$sleeper/status
	awk '{ print "sleeper_runs", $3 }' /proc/$sleeper/schedstat
	awk '$1 == "nr_wakeups" { print "sleeper_wakeups", $3 }' /proc/$sleeper/sched
	# Sectors read, written and discarded.
	awk '{ print "bytes", ($3 + $7 + $14) * 512; print "ended", ($3 + $7 + $14) * 512; print "ended_too", ($3 + $7 + $14) * 512 }' $disk/stat
	echo "commands $(($(cat $disk/device/iodone_cnt)))"
}

counters >outer_before
start counters ready sleeper=$sleeper
armed counters
counters >inner_before
load tcp 10
load fault 200
ping -c 3 127.0.0.1 >/dev/null
nslookup nowhere.example 127.0.0.1 >/dev/null 2>&1 || true
echo to the console >/dev/ttyS0
dd if=/dev/sda of=/dev/null bs=4k count=500 2>/dev/null
dd if=/dev/zero of=/dev/sda bs=4k count=100 conv=fsync 2>/dev/null
sleep 1
counters >inner_after
stop
counters >outer_after
kill $sleeper

# The script's count is between the difference of the inner readings and that of the outer ones.
awk '
FILENAME == "outer_before" { low_outer[$1] = $2 }
FILENAME == "inner_before" { low_inner[$1] = $2 }
FILENAME == "inner_after" { high_inner[$1] = $2 }
FILENAME == "outer_after" { high_outer[$1] = $2 }
FILENAME == "counters.out" && NF == 2 { reported[$1] = $2 }
END {
	for (what in low_outer) {
		least = high_inner[what] - low_inner[what]
		most = high_outer[what] - low_outer[what]
		if (reported[what] < least || reported[what] > most || !most) {
			print what ": reported " reported[what] + 0 ", counted " least " to " most
			wrong = 1
		} else
			seen++
	}
	print seen " counters agree"
	exit wrong
}' outer_before inner_before inner_after outer_after counters.out || { cat counters.out counters.err; exit 1; }
echo 'all as expected'
