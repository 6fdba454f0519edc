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
		for way in exit kill exec vfork clone threads signals deep seccomp trace; do timeout -s KILL 5 abuse $way; done >/dev/null 2>&1
		for way in chain signal library made; do stacks $way >/dev/null 2>&1; done
		# On emulated CPUs that are always busy, each second of a session takes a second of a host CPU
		# time, and probes that print 8 MB at each hit fill the rings with more than the loader can print in time.
		usleep 3000000
	done
}

# end TENTHS PROCESS...: waits so long for them to end; fails if one has not.
end() {
	left=$1
	shift
	for process; do
		while kill -0 $process 2>/dev/null; do
			[ $left -gt 0 ] || return 1
			usleep 100000
			left=$((left - 1))
		done
	done
}

# interrupted PROCESS...: they end soon, even while they arm thousands of probes; if not, `hangs` names them.
interrupted() {
	kill -INT $* 2>/dev/null
	end $((80 * patience)) $* && return
	for process; do
		! kill -KILL $process 2>/dev/null || hangs="$hangs $process "
	done
}

# disturb KIND MODULE: disturbs the machine, or the loaders, whose processes are $loaders.
disturb() {
	case $1 in
	1) sleep 1; kill -INT $loaders ;;
	2) sleep 2; kill -KILL $loaders ;;
	3) kill -STOP $loaders; sleep 2; kill -CONT $loaders ;;
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
	10) spilerun -R "$2" -T 1 & other=$!; end $longest $other || interrupted $other ;;
	11)
		# Allocations fail: loading and starting may be refused, and processes that allocate memory are killed.
		left=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo)
		dd if=/dev/zero of=/tmp/fill bs=64k count=$(((left - 30000) / 64))
		spilerun -R "$2" -T 1 & other=$!
		sleep 1
		modprobe lustre
		rmmod lustre
		end $longest $other || interrupted $other
		rm /tmp/fill
		;;
	esac >/dev/null 2>&1
}

# attack ROUND KIND SECONDS LONGEST PATIENCE NUMBER...: runs the modules attack_NUMBER at the same time, for SECONDS, but no session
# longer than LONGEST with what it takes to arm and to print. Returns ROUND.log, the kernel log, and of each module
# NUMBER.messages, the loader's output, and NUMBER.end: the loader's status, or `hangs` if the session did not end when it
# was interrupted, and `left` if the module is still loaded.
attack() {
	round=$1 kind=$2 seconds=$3 longest=$(($4 * 10)) patience=$5 hangs= loaders=
	shift 5
	dmesg -c >/dev/null
	for number; do
		sh -c 'echo 500 >/proc/$$/oom_score_adj; exec "$@"' sh spilerun /root/attack_$number.ko -T $seconds \
			>/tmp/out 2>/tmp/messages.$number </dev/null &
		loaders="$loaders $!"
	done
	disturb $kind /root/attack_$1.ko
	end $longest $loaders || interrupted $loaders
	for number; do
		loader=${loaders# }
		loader=${loader%% *}
		loaders=${loaders# $loader}
		wait $loader
		status=$?
		case $hangs in *" $loader "*) status=hangs ;; esac
		# A killed loader's session is removed by the next start.
		for turn in 1 2 3 4 5 6 7 8 9 10; do
			! grep -q "^attack_$number " /proc/modules || { spilerun -d attack_$number >/dev/null 2>&1; sleep 1; }
		done
		! grep -q "^attack_$number " /proc/modules || status="$status left"
		echo "$status" >/tmp/end
		head -c 20000 /tmp/messages.$number >/tmp/messages.head
		give /tmp/messages.head $number.messages
		give /tmp/end $number.end
		rm -f /root/attack_$number.ko /tmp/messages.$number
	done
	dmesg -c >/tmp/log
	give /tmp/log $round.log
}

load &
load &
