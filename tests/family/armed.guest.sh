# Shows: 24,000 probes in 20 modules, 8,000 of them at inlined copies, which become kprobes: the expected duration is printed
# before most of the work is done and is of the right size, although the machine may become busier (nothing is printed if it is
# short), progress is shown, and each probe is hit once per call. All that the kernel can turn into jumps are.
# family: yes
# script: calls calls.stp
# stdout: ^estimate: before the first progress$
# stdout: ^progress$
# stdout: ^calls 16000 copies 8000$
# stdout: ^armed as estimated$
# stdout: ^optimised: as by itself$
# stdout: ^kprobes left: 0$
# limit: 300

for child in $(seq 11 19); do modprobe fam$child; done
now() { cut -d. -f1 /proc/uptime; }
cat >calls.sh <<'end'
cut -d. -f1 /proc/uptime >began
for run in /sys/module/fam*/parameters/run; do echo 1 >$run; done
grep -v FTRACE /sys/kernel/debug/kprobes/list >copies
end
begin=$(now)
spilerun calls.ko -c 'sh calls.sh' >out 2>err
grep -n 'WARNING: 8000 of 24002 probes .* become kprobes .* about [0-9]* s for all' err | cut -d : -f 1 >estimate
grep -n 'NOTICE: [0-9]* of 24002 probes are prepared after' err | head -n 1 | cut -d : -f 1 >progress
took=$(($(cat began) - begin))
estimated=$(sed -n 's/WARNING: 8000 of .* about \([0-9]*\) s for all.*/\1/p' err)
# Below five seconds there is none, a quarter of the longest time that is as estimated.
if [ -z "$estimated" ] && [ $took -lt 20 ]; then
	estimated=$took
	echo 1 >estimate
fi
[ "$(cat estimate)" = 1 ] && echo 'estimate: before the first progress'
[ -s progress ] || [ $took -lt 4 ] && echo progress
cat out
if [ $estimated -lt $((4 * took)) ] && [ $((4 * estimated)) -ge $took ]; then
	echo armed as estimated
else
	echo "armed after $took s, estimated $estimated s"
fi
# The kernel's own probe in the place of one of the copies.
all=$(wc -l <copies)
optimised=$(grep -c OPTIMIZED copies || true)
sed -n '1s/.* k *\([^ ]*\) *\(fam[0-9]*\) .*/p:itself \2:\1/p' copies >/sys/kernel/debug/tracing/kprobe_events
echo 1 >/sys/kernel/debug/tracing/events/kprobes/itself/enable
! grep -q OPTIMIZED /sys/kernel/debug/kprobes/list || expected=$all
echo 0 >/sys/kernel/debug/tracing/events/kprobes/itself/enable
echo >/sys/kernel/debug/tracing/kprobe_events
[ "$optimised" = "${expected:-0}" ] && [ "$all" = 8000 ] && echo 'optimised: as by itself' || echo "optimised: $optimised of $all"
grep -v 'become kprobes one by one' err >&2 || true
echo "kprobes left: $(wc -l </sys/kernel/debug/kprobes/list)"
unload_family
