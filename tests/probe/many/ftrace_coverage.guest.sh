# Shows: entries known to ftrace are attached by ftrace, none by a kprobe. The others become kprobes; if there are many of them
# the user is warned before they are registered.
# script: library tests/probe/many/library.stp
# stdout: ^armed: thousands, kprobes: hundreds$
# stdout: ^enabled kprobes at places of ftrace: 0$
# stdout: ^warned: 1, running then: 0$
# stdout: ^hits 1$
# limit: 120

start library began
warned_while_running=-
until spilerun status library 2>/dev/null | grep -q ': running, '; do
	[ "$warned_while_running" != - ] || ! grep -q 'they become kprobes' library.err || warned_while_running=0
	sleep 0.3
done
some() { [ "$1" -ge $2 ] && echo $3 || echo "$1"; }
kprobes=$(grep -vc DISABLED /sys/kernel/debug/kprobes/list)
entries=$(wc -l </sys/kernel/debug/tracing/enabled_functions)
echo "armed: $(some $entries 2000 thousands), kprobes: $(some $kprobes 500 hundreds)"
echo "enabled kprobes at places of ftrace: $(grep FTRACE /sys/kernel/debug/kprobes/list | grep -vc DISABLED)"
cat /proc/version >/dev/null
kill -INT $loader
wait $loader
echo "warned: $(grep -c 'they become kprobes one by one' library.err), running then: $warned_while_running"
cat library.out library.err
# Its kprobes are disarmed in the background.
removed library
