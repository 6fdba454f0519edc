# Shows: the examples about the network, under a transfer of 100000 bytes on the loopback device and a refused connection.
# script: sizes examples/tcp_sendmsg_sizes.stp
# script: results examples/tcp_sendmsg_results.stp
# script: by_process examples/tcp_sendmsg_by_process.stp
# script: per_second examples/tcp_sendmsg_per_second.stp
# script: stacks examples/tcp_sendmsg_stacks.stp
# script: callers examples/tcp_sendmsg_callers.stp
# script: latency examples/tcp_sendmsg_latency.stp
# script: to_whom examples/tcp_who_to_whom.stp
# script: tcpconnect examples/tcpconnect.stp
# script: packet_way -G port=4321 examples/packet_way.stp
# script: drops examples/drops.stp
# script: softirqs examples/softirqs.stp
# stdout: ^all as expected$
# limit: 180

ip link set lo up 2>/dev/null || ifconfig lo 127.0.0.1 up
all='sizes results by_process per_second latency to_whom tcpconnect packet_way drops softirqs'
# On 5.10 the kernel's stacks end at a function whose return is probed too, as it is by these: there they run at another time.
case $(uname -r) in 5.10.*) later='stacks callers' ;; *) later= all="$all stacks callers" ;; esac

# transfer: 100000 bytes and a refused connection, seen by the scripts that run.
transfer() {
	sleep 20 | nc -l -p 4321 >received &
	sleep 1
	{ head -c 100000 /dev/zero; sleep 2; } | nc 127.0.0.1 4321
	nc -w 1 127.0.0.1 9 </dev/null 2>/dev/null || true
	sleep 2
	kill -INT $loaders || cat ./*.err
	wait $loaders || true
}

start_all $all
transfer
loaders=
[ -z "$later" ] || { start_all $later; transfer; }

# shows NAME PATTERN: a line of the script's output matches.
[ "$(wc -c <received)" = 100000 ] || { ls -l received; exit 1; }
shows sizes '^[0-9]+ calls, 100000 bytes; smallest [0-9]+, largest [0-9]+$'
shows sizes '\|@+ +[1-9][0-9]*$'
shows results '^ +[1-9][0-9]*  [1-9][0-9]* bytes$'
shows by_process '^ +[0-9]+ nc +[1-9][0-9]* +100000 '
shows per_second '^[0-9:]{8} +[1-9][0-9]* +[1-9][0-9]*'
shows stacks '^ 0x[0-9a-f]+ : tcp_sendmsg\+0x[04]/0x'
shows stacks '^ 0x[0-9a-f]+ : sock_write_iter\+0x'
shows callers '^ +[1-9][0-9]*  .*sock_write_iter'
shows latency '^[1-9][0-9]* calls, [1-9][0-9]* ns on average, [1-9][0-9]* at most$'
shows to_whom '^nc +[0-9]+ 127\.0\.0\.1:[0-9]+ +127\.0\.0\.1:4321 +100000$'
shows tcpconnect '^nc +[0-9]+ 127\.0\.0\.1:[1-9][0-9]* +127\.0\.0\.1:4321 +begun$'
# A reused address starts over: the first stage has no time.
shows packet_way '^1 taken from the device or loopback +[1-9][0-9]* +- +-$'
shows packet_way '^3 IP to TCP +[1-9][0-9]* +[1-9]'
shows packet_way "^4 TCP to the reader's wake-up +[1-9]"
# Kernels before 5.17 give no reason.
case $(uname -r) in 5.10.*) reason= ;; *) reason=SKB_DROP_REASON_NO_SOCKET ;; esac
shows drops "^ +[1-9][0-9]*  tcp_v4_rcv\\+0x.* $reason *\$"
shows softirqs '^NET_RX +[1-9][0-9]* +[0-9]+ +[0-9]+$'
[ -z "$failed" ]
echo all as expected
