# Shows: the examples about locks, faults, system calls, sockets, allocations, files, control groups and work queues, under a
# known load.
# script: futexes examples/futexes.stp
# script: pagefaults examples/pagefaults.stp
# script: syscall_errors examples/syscall_errors.stp
# script: syscall_times examples/syscall_times.stp
# script: socktop examples/socktop.stp
# script: tcpstates examples/tcpstates.stp
# script: kmalloc_callers examples/kmalloc_callers.stp
# script: file_latency examples/file_latency.stp
# script: cputop examples/cputop.stp
# script: cgroup_io examples/cgroup_io.stp
# script: workqueues examples/workqueues.stp
# stdout: ^all as expected$
# limit: 240

ifconfig lo 127.0.0.1 up
mkdir -p /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
mkdir -p /sys/fs/cgroup/story/inner

all='futexes pagefaults syscall_errors syscall_times socktop tcpstates kmalloc_callers file_latency cputop cgroup_io workqueues'
start_all $all
# Started connections, as counted by the kernel itself.
begun() { awk '$1 == "Tcp:" && $6 ~ /^[0-9]+$/ { print $6 }' /proc/net/snmp; }
before=$(begun)
load futex 10
# More than the shells and loaders beside it, which wait for CPU time in their faults: the 20 with the most are printed.
load fault 5000
load tcp 10
nc -l -p 8081 >/dev/null </dev/null &
for tenth in $(seq 100); do grep -q ':1F91 .* 0A ' /proc/net/tcp /proc/net/tcp6 && break; pause 0.1; done
nc 127.0.0.2 8081 </dev/null >/dev/null 2>&1 || true
load sleep 10
load burn 500
cat /no/such/file 2>/dev/null || true
cat /etc/hostname >/dev/null
sh -c 'echo $$ >/sys/fs/cgroup/story/inner/cgroup.procs; exec dd if=/dev/zero of=/tmp/written bs=4k count=5' 2>/dev/null
sync
after=$(begun)
# Flushing runs work on each CPU without a visible caller that queued it. The second write queues some on the writer's
# own CPU too (schedule_on_each_cpu()), which is still queued when it is flushed.
for time in 1 2 3 4 5 6 7 8 9 10; do
	dd if=/dev/zero of=/tmp/written bs=4k count=50 2>/dev/null
	echo 1 >/proc/sys/vm/compact_memory
	echo 1 >/proc/sys/vm/stat_refresh
done
sleep 3
kill -INT $loaders || cat ./*.err
wait $loaders || true

shows futexes '^ *[0-9]+ load +0x[0-9a-f]+ +[1-9]'
shows pagefaults '^ *[0-9]+ load +[0-9]{3,} +[0-9]+ +[0-9]{3,}'
shows syscall_errors '^ *[1-9][0-9]* cat +open(at)? +ENOENT$'
shows syscall_times '^clock_nanosleep +[1-9][0-9]+ +[0-9]{6,}'
shows socktop '^ *[0-9]+ load +INET +[1-9][0-9]* +[1-9][0-9]* '
shows tcpstates ' TCP_ESTABLISHED +TCP_(FIN_WAIT1|CLOSE_WAIT) '
shows tcpstates ' 127\.0\.0\.1:[1-9][0-9]* +127\.0\.0\.1:8080 +TCP_SYN_SENT +TCP_ESTABLISHED '
shows tcpstates ' 127\.0\.0\.1:[1-9][0-9]* +127\.0\.0\.2:8081 +TCP_SYN_SENT +TCP_ESTABLISHED '
[ -z "$(awk '$3 ~ /:0$/' tcpstates.out)" ] || { echo 'tcpstates: a port is 0'; failed=1; }
printed=$(grep -cE ' TCP_CLOSE +TCP_SYN_SENT ' tcpstates.out)
[ "$printed" = $((after - before)) ] || { echo "connections: $printed printed, $((after - before)) counted"; failed=1; }
shows kmalloc_callers '^[a-z_0-9]+ +[1-9][0-9]* +[1-9][0-9]* +[1-9][0-9]* GFP_'
shows file_latency '^read +[0-9]+ +[0-9]+ +[0-9]+ /dev/zero$'
shows file_latency '^write +[0-9]+ +[0-9]+ +[0-9]+ /tmp/written$'
shows cputop '^ *[0-9]+ load +[1-9][0-9]{4,}$'
shows cgroup_io '^ +5 +20480 +[5-9] +20[0-9]{3} /story/inner$'
shows workqueues '^wq_barrier_func +[1-9][0-9]* +- +[0-9]+ +[0-9]+$'
shows workqueues '^[a-z_0-9]+ +[1-9][0-9]* +[0-9]+ +[0-9]+ +[0-9]+$'
[ -z "$failed" ]
echo 'all as expected'
