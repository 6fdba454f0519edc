# Shows: a handler only runs if the current stack has enough room: a task's, that of soft and hard interrupts, and those of the
# debug exception (a watchpoint) and of NMIs (sysrq-l), which are half as large. Skipped hits are reported as "low stack"; a
# handler that needs little runs on all of them.
# script: deep -DMAXNESTING=12 -DMAXSKIPPED=1000000000 -DSTP_NO_OVERLOAD tests/guard/stacks_deep.stp
# script: shallow -DMAXSKIPPED=1000000000 -DSTP_NO_OVERLOAD tests/guard/stacks_shallow.stp
# stdout: ^deep: task=1 breakpoint=1 soft=1 hard=1 watch=0 nmi=0$
# stdout: ^shallow: soft=1 hard=1 watch=1 nmi=1$
# stdout: ^hard: most ran$
# stdout: ^watch: low stack$
# stdout: ^nmi: low stack$
# stdout: ^log clean$
# limit: 120

# sysrq-l does not interrupt idle CPUs, and a CPU in user space handles its NMI on a task's stack.
load='dd if=/dev/zero of=/dev/null bs=16M & busy=$!; for turn in 1 2 3; do cat /etc/hostname; echo l >/proc/sysrq-trigger; sleep 1; done; kill $busy'
spilerun deep.ko --stats=json -c "$load" >deep.out 2>deep.err
spilerun shallow.ko --stats=json -c "$load" >shallow.out 2>shallow.err
grep -h '^deep: ' deep.out || cat deep.out deep.err
grep -h '^shallow: ' shallow.out || cat shallow.out shallow.err
# skipped NAME POINT: whether the probe there was skipped because of its stack.
skipped() {
	grep '^{"probes"' deep.err | sed 's/{"point"/\n{"point"/g' | grep -F "$2" | grep -q '"low_stack":[1-9]' && echo "$1: low stack"
}
# count NAME POINT: the number of that name of the probe there.
count() { grep '^{"probes"' deep.err | sed 's/{"point"/\n{"point"/g' | grep -F "$2" | sed "s/.*\"$1\":\([0-9]*\).*/\1/"; }
# Where the interrupt stack is not found, only the current page is known, and hits that need more are skipped.
[ "$(count low_stack hrtimer_interrupt)" -ge "$(count handled hrtimer_interrupt)" ] || echo 'hard: most ran'
skipped watch jiffies_64
skipped nmi show_regs
gone deep
# sysrq-l writes traces into the kernel's log; anything else there is a failure.
dmesg -c | grep -iE 'guard|BUG:|Oops|panic|WARNING:|corrupt' || echo 'log clean'
