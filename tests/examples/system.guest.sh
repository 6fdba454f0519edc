# Shows: the examples about processes, files, memory and the scheduler, under a known load.
# script: execsnoop examples/execsnoop.stp
# script: opensnoop examples/opensnoop.stp
# script: killsnoop examples/killsnoop.stp
# script: oomkill examples/oomkill.stp
# script: runqlat examples/runqlat.stp
# script: offcputime examples/offcputime.stp
# script: timers examples/timers.stp
# script: profile -DMAXACTION=1000000 examples/profile.stp
# script: threshold -G limit_us=0 examples/threshold.stp
# script: cachestat examples/cachestat.stp
# script: pages -G interval=1 examples/pages_by_process.stp
# script: callees examples/callees.stp
# script: inlined examples/inlined.stp
# script: biolatency examples/biolatency.stp
# script: tasks -DMAXACTION=200000 examples/tasks.stp
# script: locks -DMAXACTION=200000 examples/locks.stp
# stdout: ^all as expected$
# limit: 240

all='execsnoop opensnoop killsnoop oomkill runqlat timers profile threshold cachestat pages biolatency'
start_all $all
/bin/busybox echo text >/dev/null
cat /etc/hostname >/dev/null
echo through a pipe | cat >/dev/null
cat /no/such/file 2>/dev/null || true
sleep 100 &
victim=$!
sleep 1
kill -USR1 $victim
wait $victim || true
sleep 100 &
victim=$!
sleep 1
echo 1000 >/proc/$victim/oom_score_adj
echo f >/proc/sysrq-trigger
wait $victim || true
# The kernel's own report contains a stack, and is not a fault.
dmesg -c >/dev/null
dd if=/dev/zero of=/dev/null bs=1M count=2000 2>/dev/null
dd if=/dev/zero of=/tmp/written bs=1M count=20 2>/dev/null
sleep 3
kill -INT $loaders || cat ./*.err
wait $loaders || true

run() {
	name=$1
	shift
	spilerun $name.ko "$@" >$name.out 2>$name.err || { echo "$name: status $?"; cat $name.err; exit 1; }
}
run offcputime -c 'sh -c "sleep 1; sleep 1"'
run callees -c 'dd if=/etc/hostname of=/dev/null'
run inlined -c 'dd if=/etc/hostname of=/dev/null'
set -- /proc/[0-9]*
processes=$#
run tasks
run locks

# shows NAME PATTERN: a line of the script's output matches.
shows execsnoop '^[0-9:]{8} +[0-9]+ +[0-9]+ +0 "/bin/busybox" \["/bin/busybox", "echo", "text"\]$'
shows opensnoop '^(cat|exe) +[0-9]+ +[0-9]+ +/etc/hostname$'
shows opensnoop '^(cat|exe) +[0-9]+ +-1 ENOENT +/no/such/file$'
shows killsnoop '^[0-9:]{8} sh +[0-9]+  SIGUSR1 +(sh|sleep|exe) +[0-9]+$'
shows oomkill 'killed (sleep|exe|sh)\([0-9]+\), [0-9]+ MB resident$'
shows oomkill ' : oom_kill_process\+0x|out_of_memory\+0x'
shows runqlat '^[1-9][0-9]* waits, [0-9]+ us on average'
shows timers '^ +[1-9][0-9]*  [a-z_]+ \[kernel\]$'
shows profile '^(dd|exe);.*;[a-z_0-9]+ [1-9][0-9]*$'
shows profile '^(dd|exe);(entry_SYSCALL_64[a-z_]*|do_syscall_64);.*;[a-z_0-9]+ [1-9][0-9]*$'
shows threshold ' (cat|dd|exe)\([0-9]+\) vfs_read of (hostname|zero) took [0-9]+ us, returned [0-9]+$'
! grep ' of  took' threshold.out || { echo 'threshold: a file without a name'; failed=1; }
shows cachestat '^ +[1-9][0-9]* +[0-9]+ +[0-9]+ +[0-9]+$'
shows pages '^(dd|exe) +[0-9]+ +[1-9][0-9]* +[0-9]+$'
shows offcputime '^(sleep|exe): [12][0-9]{6} us in [0-9]+ waits$'
shows offcputime '^(schedule|__schedule|do_nanosleep)\+0x'
shows offcputime 'hrtimer_wakeup\+0x|try_to_wake_up\+0x'
shows callees '^vfs_read \{$|^ksys_read \{$'
shows callees '^  vfs_read \{$'
shows callees '^    \} rw_verify_area [0-9]+ us$|^    rw_verify_area \{$'
# A separate function if the kernel has a symbol of it, as 6.12 does.
if grep -q ' fdget_pos$' /proc/kallsyms; then kept='a function by itself'; else kept='inlined into .*read'; fi
shows inlined "^fdget_pos, $kept: [1-9]"
shows inlined '^kernel.statement\("vfs_read@(debian/build/source_rt/)?fs/read_write.c:[0-9]+"\): .*buf=0x'
shows tasks '^ +1 [a-z]+ +S '
shows tasks '^ +2 kthreadd +S +[0-9]+ +[0-9]+  kthreadd( <|$)'
[ "$(grep -c '^ *[0-9]' tasks.out)" -ge "$processes" ] || { echo too few tasks; head -n 40 tasks.out; failed=1; }
# Sorted by the time when they ran, none of it in the future.
awk '$1 ~ /^[0-9]+$/ && match($0, / [A-Z?] +[0-9]+ +-?[0-9]+  /) { split(substr($0, RSTART, RLENGTH), part); print part[3] }' tasks.out >ago
[ "$(wc -l <ago)" -ge "$processes" ] && sort -n ago | cmp - ago && [ "$(head -n 1 ago)" -ge 0 ] || { echo tasks are not in order; failed=1; }
shows locks '^ +PID COMMAND +INODE KIND +WAITERS$'
[ -z "$failed" ]
echo all as expected
