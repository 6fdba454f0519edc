# Shows: events of the network's counters (tcpmib, ipmib, linuxmib, udp) agree with /proc/net/snmp and netstat, over traffic with
# resets, retransmissions, truncated packets and a full accept queue.
# script: snmp tests/tapset/snmp.stp
# stdout: ^1[4-9] counters agree$
# limit: 90

ifconfig lo 127.0.0.1 mtu 1500 up

counters() {
	awk '$1 in names { for (i = 2; i <= NF; i++) { name = $1; sub(/:/, ".", name); print name names_of[$1, i], $i }; delete names[$1]; next }
		{ names[$1] = 1; for (i = 2; i <= NF; i++) names_of[$1, i] = $i }' /proc/net/snmp /proc/net/netstat
}

start snmp ready
armed snmp
counters >before
load tcp 10
load crowd
# A port without a listener; a datagram that is returned, and one in three fragments.
nc 127.0.0.1 9 </dev/null 2>/dev/null || true
nslookup nowhere.example 127.0.0.1 >/dev/null 2>&1 || true
ping -c 2 -s 4000 127.0.0.1 >/dev/null
sleep 1
counters >after
stop

awk '
FILENAME == "before" { before[$1] = $2 }
FILENAME == "after" { after[$1] = $2 }
FILENAME == "snmp.out" && NF == 2 { reported[$1] = $2 }
END {
	for (what in reported) {
		if (!(what in after)) { print what ": the kernel counts no such thing"; wrong = 1 }
		else if (reported[what] != after[what] - before[what]) { print what ": reported " reported[what] ", counted " after[what] - before[what]; wrong = 1 }
		else seen++
	}
	for (what in after)
		if (after[what] != before[what] && !(what in reported) && what ~ /^(Tcp\.(Active|Passive|Attempt|Estab|Curr|In|Out|Retrans)|TcpExt\.(ListenD|ListenO|DelayedACKs$))/)
			{ print what ": reported none, counted " after[what] - before[what]; wrong = 1 }
	print seen " counters agree"
	exit wrong
}' before after snmp.out || { cat snmp.out snmp.err; exit 1; }
