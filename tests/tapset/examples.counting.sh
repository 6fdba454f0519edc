# Functions for the guest of examples_run.host.sh. The kernel counts events by itself, with histograms of ftrace and its own counters, while
# scripts count them: facts are lines NAME VALUE. `inner` facts are of a load alone, `outer` ones of the whole time in which
# scripts ran. Which commands' events are counted one by one: those that only the load runs.
tracing=/sys/kernel/tracing
commands="load dd mkfs.ext4 cat calls"
mount -t tracefs tracefs $tracing 2>/dev/null

# histogram INSTANCE EVENT DEFINITION
histogram() {
	echo "hist:$3" >>$tracing/instances/$1/events/$2/trigger
}

# Counters of the kernel, as facts.
counters() {
	awk '/^(Ip|Tcp):/ { if ($1 in names) { n = split(names[$1], name); for (i = 2; i <= n; i++) print tolower($1) name[i], $i } else names[$1] = $0 }' /proc/net/snmp
	awk '$1 == "pgfault" { print "pgfault", $2 }' /proc/vmstat
	awk '$3 == "sda" { print "sda.read", $6; print "sda.written", $10 }' /proc/diskstats
}

# begin_counting INSTANCE
begin_counting() {
	mkdir $tracing/instances/$1
	histogram $1 raw_syscalls/sys_enter keys=id.syscall
	histogram $1 raw_syscalls/sys_enter "keys=id.syscall if common_pid == $$"
	counters >$1.before
	[ $1 = inner ] || return 0
	histogram $1 raw_syscalls/sys_enter keys=common_pid
	histogram $1 raw_syscalls/sys_enter 'keys=common_pid if comm == "load"'
	for command in $commands; do
		histogram $1 raw_syscalls/sys_enter "keys=id.syscall if comm == \"$command\""
		histogram $1 raw_syscalls/sys_exit "keys=id.syscall:vals=ret if comm == \"$command\" && ret >= 0"
		histogram $1 raw_syscalls/sys_exit "keys=id.syscall,ret if comm == \"$command\" && ret < 0"
	done
	histogram $1 signal/signal_generate 'keys=sig if comm == "load"'
	histogram $1 sched/sched_process_exec keys=filename
	histogram $1 sched/sched_process_fork keys=parent_comm
	histogram $1 net/netif_receive_skb keys=name
	histogram $1 net/net_dev_queue keys=name
	histogram $1 block/block_rq_insert keys=rwbs
	histogram $1 block/block_rq_complete keys=rwbs
	histogram $1 block/block_bio_queue keys=rwbs
	histogram $1 block/block_bio_queue 'keys=common_type if sector < 4'
	histogram $1 syscalls/sys_enter_futex 'keys=op if comm == "load"'
}

# end_counting INSTANCE: prints its facts.
end_counting() {
	counters >$1.after
	awk '{ if (FNR == NR) before[$1] = $2; else print $1, $2 - before[$1] }' $1.before $1.after | sed "s/^/$1./"
	for event in raw_syscalls/sys_enter raw_syscalls/sys_exit signal/signal_generate sched/sched_process_exec \
		sched/sched_process_fork net/netif_receive_skb net/net_dev_queue block/block_rq_insert block/block_rq_complete block/block_bio_queue \
		syscalls/sys_enter_futex; do
		echo "event $event"
		cat $tracing/instances/$1/events/$event/hist
	done | awk -v instance=$1 '
		$1 == "event" { event = $2; sub(".*/", "", event) }
		/^# trigger info/ {
			command = match($0, /comm == "[^"]*"/) ? substr($0, RSTART + 9, RLENGTH - 10) : ""
			shell = /common_pid == /
			keys = $4; sub(/^hist:keys=/, "", keys); sub(/:.*/, "", keys)
		}
		!/^[{]/ { next }
		{
			hits = $0; sub(/.*hitcount: */, "", hits); sub(/ .*/, "", hits)
			key = $3; gsub(/[,}]/, "", key); sub(/^sys_/, "", key); n = split(key, part, "/")
		}
		event == "sys_enter" && keys == "id.syscall" {
			print (command != "" ? "calls." command : instance (shell ? ".shell" : "")) "." key, hits
			if (command != "")
				all[command] += hits
			else if (!shell && (key == "read" || key == "write"))
				moved += hits
		}
		event == "sys_enter" && keys == "common_pid" { print (command == "" ? "pid." : "own.") key, hits }
		event == "sys_exit" && keys == "id.syscall" {
			print "good." command "." key, hits
			sum = $0; sub(/.* ret: */, "", sum); print "kb." command "." key, int(sum / 1024)
		}
		# Too large for numbers of awk: the last six digits of 2^64 are 551616.
		event == "sys_exit" && keys == "id.syscall,ret" {
			number = $0; sub(/.* ret: */, "", number); sub(/ .*/, "", number)
			print "errors." command "." key "." (551616 - substr(number, length(number) - 5)), hits
		}
		event == "signal_generate" { print "signals." command "." key, hits }
		event == "sched_process_exec" { print "execs." part[n], hits }
		event == "sched_process_fork" { print "forks." key, hits }
		event == "netif_receive_skb" { print key ".received", hits }
		event == "net_dev_queue" { print key ".sent", hits }
		event == "block_bio_queue" && keys == "rwbs" { bios[key ~ /R/ ? "read" : "write"] += hits }
		event == "block_bio_queue" && keys == "common_type" { print "bios.first", hits }
		event == "block_rq_insert" { inserted += hits }
		event == "block_rq_complete" { completed += hits }
		event == "sys_enter_futex" { print "futex." key, hits }
		END {
			for (command in all) print "all." command, all[command]
			for (kind in bios) print "bios." kind, bios[kind]
			print instance ".moved", moved + 0
			if (instance == "inner") print "requests", inserted + 0 "\ncompleted", completed + 0
		}'
	rmdir $tracing/instances/$1
}

# What /proc and stat(1) say; $1 is the process that used the CPU for a while, $2 the facts so far.
other_facts() {
	echo "burn $1"
	awk -v pid=$1 '$1 == "pid." pid { print "burn.all", $2 } $1 == "own." pid { print "burn.own", $2 }' $2
	awk '/^Max open files/ { print "limit.files.soft", $4; print "limit.files.hard", $5 } /^Max pending/ { print "limit.pending", $4 }' /proc/1/limits
	ignored=$(awk '/^SigIgn/ { print $2 }' /proc/1/status) caught=$(awk '/^SigCgt/ { print $2 }' /proc/1/status)
	for number in 1 2 3 10 15 17; do
		bit=$((1 << number - 1))
		if [ $((0x$ignored & bit)) != 0 ]; then echo "init.$number ignored"
		elif [ $((0x$caught & bit)) != 0 ]; then echo "init.$number caught"
		else echo "init.$number default"; fi
	done
}
