# Shows: timers and perf events are armed when all other probes are, also if the script has them first: their interrupts would slow down
# the kernel's work in one step for all functions.
# script: last armed_last.stp
# stdout: ^at the first perf event: functions 1, timers 0$
# stdout: ^armed: functions 1, timers 1$
# stdout: ^ended 0$
# limit: 60

traced() { grep -c '^vfs_statfs ' /sys/kernel/debug/tracing/enabled_functions || true; }
timers() { grep -c 'handle_tick' /proc/timer_list || true; }
modprobe fault victim=last held=perf_event_create_kernel_counter
start last begun
for tenth in $(seq $((300 * PATIENCE))); do [ "$(cat /sys/module/fault/parameters/holding)" != 1 ] || break; pause 0.1; done
echo "at the first perf event: functions $(traced), timers $(timers)"
echo 1 >/sys/module/fault/parameters/released
rmmod fault || { sleep 1; rmmod fault; }
stop || true
removed last
start_armed last begun
echo "armed: functions $(traced), timers $(timers)"
stop
echo "ended $status"
