# Shows: several probes at one function's entry, whose arming ends while ftrace is asked for it: their kprobes, which are
# not enabled yet, are all unregistered. The kernel would run into the freed memory of one that is left. Found by name, they are
# registered as kprobes first.
# script: twice tests/probe/many/entries_refused_twice.stp
# stdout: ^held, ended 0, 0 kprobes$
# stdout: ^again: same number of hits$
# limit: 60

modprobe fault victim=twice held=register_ftrace_function
start twice began
for tenth in $(seq $((300 * PATIENCE))); do [ "$(cat /sys/module/fault/parameters/holding)" != 1 ] || break; pause 0.1; done
[ "$(cat /sys/module/fault/parameters/holding)" = 1 ] && held=held
stop INT
echo 1 >/sys/module/fault/parameters/released
removed twice
rmmod fault
echo "$held, ended $status, $(wc -l </sys/kernel/debug/kprobes/list) kprobes"
start_armed twice began
cat /proc/version >/dev/null
stop INT
removed twice
cat twice.out
