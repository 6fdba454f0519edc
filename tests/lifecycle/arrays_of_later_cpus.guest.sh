# Shows: a CPU that has not been online gets its places for arrays, 1.1 MB here, when it comes; then it counts like the others. One
# that goes and comes again keeps what it has counted. The memory is freed with the module.
# script: later -w tests/lifecycle/arrays_of_later_cpus.stp
# stdout: ^the kernel tells it of CPUs$
# stdout: ^little$
# stdout: ^cpu0 50 50 50 50$
# stdout: ^cpu1 70 70 70 70$
# stdout: ^all 120 1$
# stdout: ^freed$
# absent: BUG:|Call Trace

cpu1=/sys/devices/system/cpu/cpu1/online
# Free memory, KB. The kernel does not count pages that CPUs keep to allocate again, which can be tens of MB since Linux 6.7.
available() {
	echo 3 >/proc/sys/vm/drop_caches
	awk '/^MemAvailable:/ { free += $2 } /^ +count:/ { free += 4 * $2 } END { print free }' /proc/meminfo /proc/zoneinfo
}
# read_on CPUS NUMBER: that many reads on these CPUs.
read_on() { taskset "$1" dd if=/dev/zero of=/dev/null bs=1 count="$2" 2>/dev/null; }
before=$(available)
echo 0 >$cpu1
start_armed later begun -v
grep -q 'spile/arrays:prepare' /sys/devices/system/cpu/hotplug/states && echo "the kernel tells it of CPUs"
one=$(available)
read_on 1 50
echo 1 >$cpu1
two=$(available)
if [ $((one - two)) -lt 6000 ]; then echo little; else echo "CPU 1 took $((one - two)) KB"; fi
read_on 2 30
echo 0 >$cpu1
echo 1 >$cpu1
read_on 2 40
stop
cat later.out
gone later
left=$((before - $(available))) taken=$((before - one))
# What tests before this one have left is freed meanwhile, or not: some MB of a hundred.
if [ $left -lt $((taken / 4)) ]; then echo freed; else echo "not freed: $left KB of $taken"; fi
