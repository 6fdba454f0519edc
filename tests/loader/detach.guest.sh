# Shows: -L leaves a session running without a loader, -A continues reading it, QUIT detaches it again; nothing is lost or printed
# twice; -d ends a detached one, and one whose error budget is spent is
# disarmed before anybody attaches. With --keep a killed loader leaves its session running too; rmmod ends it properly.
# script: ticks ticks.stp
# script: spent spent.stp
# limit: 60
# stdout: ^runs without a loader$
# stdout: ^in use 6$
# stdout: ^no line lost or repeated$
# stdout: ^runs after its loader was killed$
# stdout: ^no line lost by the kill$
# stdout: ^deleted$
# stdout: ^unloaded$
# stdout: ^disarmed without a loader$
# stdout: ^ERROR: no dd here, ended by an error, 1$

# in_order FILES: whether the numbers of all ticks are there, from 1, each once.
in_order() {
	grep -h '^tick' "$@" | cut -d ' ' -f 2 >numbers
	seq "$(wc -l <numbers)" | cmp - numbers
	[ "$(wc -l <numbers)" -gt "$least" ]
}

spilerun -L ticks.ko >out.1 2>err
grep -q 'To reconnect, type "spilerun -A ticks"' err
[ ! -s out.1 ]
loaded ticks
echo runs without a loader
sleep 0.5
spilerun -A ticks >out.2 2>err &
loader=$!
wait_for out.2 'tick 100'
status=0
spilerun -A ticks 2>err.2 || status=$?
echo "in use $status"
kill -s QUIT $loader
wait $loader
loaded ticks
sleep 0.3
spilerun -A ticks -T 0.5 >out.3
gone ticks
[ "$(grep -h ready out.1 out.2 | wc -l) $(tail -n 1 out.3)" = '1 stopped' ]
least=100
in_order out.1 out.2 out.3
echo no line lost or repeated

start ticks ready --keep
kill -s KILL $loader
wait $loader || true
loaded ticks
echo runs after its loader was killed
cp ticks.out out.1
# It may report possible duplicate lines.
spilerun -A ticks -T 0.3 >out.2 2>err
gone ticks
least=20
grep -h '^tick [0-9]* x*$' out.1 out.2 | cut -d ' ' -f 2 | sort -n -u >numbers
[ "$(tail -n 1 numbers)" = "$(wc -l <numbers)" ]
echo no line lost by the kill

spilerun -L ticks.ko 2>/dev/null
spilerun -d ticks
gone ticks
echo deleted
spilerun -L ticks.ko 2>/dev/null
sleep 0.2
rmmod ticks
gone ticks
echo unloaded

spilerun -L spent.ko 2>/dev/null
functions=/sys/kernel/debug/tracing/enabled_functions
grep -q vfs_read $functions
dd if=/etc/passwd of=/dev/null 2>/dev/null
for tenth in $(seq $((100 * PATIENCE))); do
	grep -q vfs_read $functions || break
	pause 0.1
done
! grep vfs_read $functions || exit 1
loaded spent
echo disarmed without a loader
status=0
spilerun -A spent >out 2>err || status=$?
echo "$(grep -o 'ERROR: no dd here' err), $(tail -n 1 out), $status"
gone spent
