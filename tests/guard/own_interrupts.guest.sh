# Shows: a handler that runs in the interrupt which the runtime itself requests, for a change of a condition, to find the
# CPU's interrupt stack or to send a signal, does not cause the next such interrupt at once: the CPU would never leave them.
# script: own_condition tests/guard/own_condition.stp
# script: own_stack tests/guard/own_stack.stp
# script: own_signal -g tests/guard/own_signal.stp
# stdout: ^condition: a few interrupts, and the probe was turned on$
# stdout: ^stack: a few interrupts$
# stdout: ^signal: sent, and not again in its own interrupt$
# limit: 60

spilerun own_condition.ko -T 30 2>&1

# A CPU in user space does not find its interrupt stack when the module is loaded. Its first hit on that stack is then in
# the softirq of an interrupt of the kernel.
taskset 2 sh -c 'trap "exec dd if=/dev/zero of=/dev/null bs=16M" USR1; while :; do :; done' 2>/dev/null &
spinner=$!
sleep 1
start own_stack began
armed own_stack
kill -USR1 $spinner
sleep 1
stop INT
kill $spinner
cat own_stack.out own_stack.err

for cpu in $(seq 0 $(($(nproc) - 1))); do
	taskset -c $cpu sh -c 'while :; do :; done' &
	spinners="$spinners $!"
done
spilerun own_signal.ko -T 30 | grep -v 'began\|tick'
kill $spinners
gone own_condition
gone own_stack
gone own_signal
