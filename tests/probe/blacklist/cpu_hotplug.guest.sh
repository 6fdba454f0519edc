# Shows: CPU hotplug works with a probe at the entry, the return and each line of its code, as far as they are not
# refused, and so do suspend and resume. The cold part of freeze_secondary_cpus() jumps to an instruction that would be
# overwritten if the kernel optimised a kprobe there to a jump.
# script: changes -DMAXSKIPPED=1000000 cpu_hotplug.stp
# limit: 150
# stdout: ^CPU 1 came back 3 times$
# stdout: ^at entries [1-9][0-9]{2,}, at lines [1-9][0-9]{2,}$
# stdout: ^back from suspend$
# stdout: ^at entries [1-9][0-9]{2,}, at lines [1-9][0-9]{2,}$

start_armed changes ready -s 1
for turn in 1 2 3; do
	echo 0 >/sys/devices/system/cpu/cpu1/online
	echo 1 >/sys/devices/system/cpu/cpu1/online
	[ "$(cat /sys/devices/system/cpu/cpu1/online)" = 1 ]
done
echo "CPU 1 came back $turn times"
stop
cat changes.out
# Its kprobes are disarmed in the background, which can take as long as a start waits for its first line here.
removed changes
start_armed changes ready -s 1
# The kernel optimises kprobes to jumps after a while.
sleep 2
echo +3 >/sys/class/rtc/rtc0/wakealarm
echo mem >/sys/power/state
echo back from suspend
stop
cat changes.out
removed changes
