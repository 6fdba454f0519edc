# Shows: a module is loaded while a begin probe runs, also on the same CPU, and if there is something to say about it. Before Linux 5.11
# only PREEMPT_RT has migrate_disable(), without which nothing else runs on that CPU until the probe ends.
# guest: 6.1 6.12 7.3
# script: beginning -g --suppress-time-limits module_while_beginning.stp
# limit: 120
# stdout: ^another build: loaded before the probe ended$

taskset 1 spilerun beginning.ko >out 2>err &
loader=$!
wait_for out began
taskset 1 insmod /root/variant/lustre.ko
if grep -q ended out; then echo 'it waited'; else echo 'another build: loaded before the probe ended'; fi
kill -s INT $loader
wait $loader || true
gone beginning
rmmod lustre
