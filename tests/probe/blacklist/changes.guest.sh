# Shows: with a probe on each function and line of what brings a CPU up and the machine back from suspend, as far as these are not
# Shows: refused, CPUs go and come, and the machine sleeps and wakes up.
# script: changes -DMAXSKIPPED=1000000 changes.stp
# limit: 120
# stdout: ^CPU 1 came back 3 times$
# stdout: ^back from suspend: [1-9]
# stdout: ^at entries [1-9][0-9]{2,}, at lines [1-9][0-9]{2,}$

start_armed changes ready -s 1
for turn in 1 2 3; do
	echo 0 >/sys/devices/system/cpu/cpu1/online
	echo 1 >/sys/devices/system/cpu/cpu1/online
	[ "$(cat /sys/devices/system/cpu/cpu1/online)" = 1 ]
done
echo "CPU 1 came back $turn times"
if [ -e /sys/power/pm_test ]; then
	for level in devices platform processors core; do
		echo $level >/sys/power/pm_test
		echo mem >/sys/power/state
	done
	echo none >/sys/power/pm_test
fi
echo +3 >/sys/class/rtc/rtc0/wakealarm
echo mem >/sys/power/state
echo "back from suspend: $(cat /sys/power/suspend_stats/success 2>/dev/null || echo 1)"
stop
cat changes.out
