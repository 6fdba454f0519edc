# Runs hostile modules one after the other, under load.

# If there is no memory, this shell stays.
echo -1000 >/proc/$$/oom_score_adj
ifconfig lo 127.0.0.1 up
echo 1 >/proc/sys/kernel/sysrq

load() {
	while [ ! -f /tmp/over ]; do
		dd if=/dev/zero of=/tmp/block bs=4096 count=50 2>/dev/null
		ls -l /proc/self/ /proc/self/fd /sys/module >/dev/null 2>&1
		cat /proc/interrupts /proc/vmstat >/dev/null
		ping -c 1 -W 1 127.0.0.1 >/dev/null
		sh -c 'kill -9 $$' 2>/dev/null
		{ user fork; user_O0 thread; user_fixed jump; user_stripped; user_split; bash -c 'echo x | while read y; do :; done'; } >/dev/null 2>&1
		for way in chain signal library made; do stacks $way >/dev/null 2>&1; done
		# On emulated CPUs that are always busy, each second of a session takes a second of a host CPU
		# time, and probes that print 8 MB at each hit fill the rings with more than the loader can print in time.
		usleep 3000000
	done
}

# ends PROCESS TENTHS: waits so long for it to end; fails if it has not.
ends() {
	waited=0
	while kill -0 $1 2>/dev/null; do
		[ $waited -lt $2 ] || return 1
		usleep 100000
		waited=$((waited + 1))
	done
}

# interrupted PROCESS: it ends soon, even while it arms thousands of probes; if not, `end` is `hangs`.
interrupted() {
	kill -INT $1 2>/dev/null
	ends $1 $((80 * patience)) || { end=hangs; kill -KILL $1; }
}

# disturb KIND MODULE: disturbs the machine, or the loader, whose process is $loader.
disturb() {
	case $1 in
	1) sleep 1; kill -INT $loader ;;
	2) sleep 2; kill -KILL $loader ;;
	3) kill -STOP $loader; sleep 2; kill -CONT $loader ;;
	4)
		for turn in 1 2; do
			echo 0 >/sys/devices/system/cpu/cpu1/online
			usleep 500000
			echo 1 >/sys/devices/system/cpu/cpu1/online
			usleep 300000
		done
		;;
	5) dd if=/dev/zero of=/tmp/fill bs=1M count=600 2>/dev/null; echo 3 >/proc/sys/vm/drop_caches; rm /tmp/fill ;;
	6) date -s '1971-01-01 00:00' >/dev/null; sleep 1; date -s '2037-01-01 00:00' >/dev/null ;;
	7) modprobe lustre; mount -t lustre none /mnt; ls /mnt >/dev/null; umount /mnt; rmmod lustre ;;
	8) echo +2 >/sys/class/rtc/rtc0/wakealarm; echo mem >/sys/power/state ;;
	9) for key in l t w m; do echo $key >/proc/sysrq-trigger; done ;;
	10) spilerun -R "$2" -T 1 & other=$!; ends $other $longest || interrupted $other ;;
	11)
		# Allocations fail: loading and starting may be refused, and processes that allocate memory are killed.
		left=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo)
		dd if=/dev/zero of=/tmp/fill bs=64k count=$(((left - 30000) / 64))
		spilerun -R "$2" -T 1 & other=$!
		sleep 1
		modprobe lustre
		rmmod lustre
		ends $other $longest || interrupted $other
		rm /tmp/fill
		;;
	esac >/dev/null 2>&1
}

# attack NUMBER KIND SECONDS LONGEST PATIENCE: runs it for SECONDS, but no session longer than LONGEST with what it takes to
# arm and to print. Returns NUMBER.messages, the loader's output; NUMBER.log, the kernel log; NUMBER.end: the loader's status, or
# `hangs` if a session did not end when it was interrupted, and `left` if the module is still loaded.
attack() {
	name=attack_$1 longest=$(($4 * 10)) patience=$5 end=
	dmesg -c >/dev/null
	sh -c 'echo 500 >/proc/$$/oom_score_adj; exec "$@"' sh spilerun /root/$name.ko -T $3 >/tmp/out 2>/tmp/messages </dev/null &
	loader=$!
	disturb $2 /root/$name.ko
	ends $loader $longest || interrupted $loader
	wait $loader
	end=${end:-$?}
	# A killed loader's session is removed by the next start.
	for turn in 1 2 3 4 5 6 7 8 9 10; do
		! grep -q "^$name" /proc/modules || { spilerun -d $name >/dev/null 2>&1; sleep 1; }
	done
	! grep -q "^$name" /proc/modules || end="$end left"
	echo "$end" >/tmp/end
	head -c 20000 /tmp/messages >/tmp/messages.head
	dmesg -c >/tmp/log
	give /tmp/messages.head $1.messages
	give /tmp/log $1.log
	give /tmp/end $1.end
	rm -f /root/$name.ko
}

load &
load &
