# Shows: callers of a set-uid spilerun as few are: no arguments at all, thousands of them, an environment that is none, signals
# blocked and ignored, timers, a thousand descriptors, namespaces of their own, as the one who gets its processes for children,
# limits of anything (without memory it is aborted): each gets a status and a message, root's rights only where they are due, and no module stays.
# script: ticks ticks.stp
# script: other ticks.stp
# limit: 300
# stdout: ^noargs: 2$
# stdout: ^long: [2-9]$
# stdout: ^environ: 0$
# stdout: ^blocked: 0$
# stdout: ^alarm: (0|142)$
# stdout: ^files: 0$
# stdout: ^user: 4$
# stdout: ^spaces: 4$
# stdout: ^adopts: (137|147)$
# stdout: ^group: 0$
# stdout: ^limits: [0-9 ]+$
# stdout: ^killed at any moment: 30 times$
# stdout: ^all at once: one, and the others have a message$
# stdout: ^others: 0$
# stdout: ^all processes are gone$

approve ./*.ko
printf 'spileusr:x:601:usr,two\n' >>/etc/group
add_users usr:5001 two:5003
make_suid
enter_open
# judge WAY: the status $s is a valid one, what it has said is fit for a terminal, and no module is left.
judge() {
	case $s in
	[0-9] | 12[0-9] | 13[0-9] | 14[0-9]) ;;
	*) echo "$1: $s"; head -c 1000 /tmp/err; exit 1 ;;
	esac
	! grep -aqE 'panicked|SIGSEGV' /tmp/err || { echo "$1: $s $(cat /tmp/err)"; exit 1; }
	! LC_ALL=C grep -a -e "$(printf '[\001-\010\013-\037\177]')" /tmp/err || exit 1
	unloaded ticks
}
for way in noargs long environ blocked alarm files user spaces adopts group; do
	seconds=0.5
	[ $way != adopts ] || seconds=30
	s=$(status usr "timeout -s KILL 60 caller $way /usr/bin/suid ticks -T $seconds")
	judge $way
	echo "$way: $s"
done
said=
for limit in 'n 3' 'n 4' 'n 5' 'n 6' 'n 8' 'n 12' 'v 8000' 'v 30000' 'd 500' 'd 3000' 's 64' 'l 0' 'f 0' 'u 1' 'u 2' 'u 3' 't 1' 'c 0' 'i 0'; do
	s=$(status usr "ulimit -$limit 2>/dev/null; exec suid ticks -T 0.2 -o limited")
	judge "ulimit -$limit"
	said="$said $s"
done
echo "limits:$said"
for turn in $(seq 30); do
	su usr -c 'exec suid ticks -o killed' >/dev/null 2>&1 &
	loader=$!
	sleep 0.$((turn * 7 % 40 + 10))
	kill -s KILL $(processes 5001) 2>/dev/null || true
	wait $loader 2>/dev/null || true
	unloaded ticks
done
echo "killed at any moment: $turn times"
for turn in $(seq 8); do
	as usr "timeout -s KILL 60 suid ticks -T 2" >/dev/null 2>err.$turn &
done
wait
started=0 refused=0
for turn in $(seq 8); do
	if grep -q '^ERROR: ' err.$turn; then refused=$((refused + 1)); else started=$((started + 1)); fi
done
[ $started -ge 1 ] && [ $((started + refused)) = 8 ] && echo 'all at once: one, and the others have a message'
unloaded ticks
echo "others: $(status two suid other -T 0.1)"
for tenth in $(seq 100); do [ -z "$(named suid)$(named spile-root)$(named spile-guard)$(named spile-start)" ] && break; sleep 0.1; done
[ -z "$(named suid)$(named spile-root)$(named spile-guard)$(named spile-start)" ] && echo all processes are gone
