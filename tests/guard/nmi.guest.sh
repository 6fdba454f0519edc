# Shows: NMIs, which the kernel sends to the other CPU for its backtrace, while handlers there hold the stripe of the
# element that the handler in the NMI changes too. Nobody waits for its own CPU: what comes in the middle of a handler
# is skipped as nested, all else is handled; each NMI is one or the other, and the totals are exact.
# script: nmi -DSTP_NO_OVERLOAD -DMAXACTION=100000 -DMAXSKIPPED=1000000 -DTRYLOCKDELAY=1000000 tests/guard/nmi.stp
# prints: all: yes
# prints: nmis: counted
# prints: nested: yes
# prints: handled: yes
# prints: locked: no
# prints: log clean
# limit: 180

# How many NMIs there were.
nmis() {
	awk '$1 == "NMI:" { for (i = 2; i <= NF && $i ~ /^[0-9]+$/; i++) sum += $i } END { print sum }' /proc/interrupts
}
cat >load <<'END'
taskset 2 dd if=/dev/zero of=/dev/null bs=1 count=10000 2>/dev/null &
dd=$!
while kill -0 $dd 2>/dev/null; do
	echo l >/proc/sysrq-trigger
	usleep 10000
done
wait
END
echo 1 >/proc/sys/kernel/sysrq
before=$(nmis)
spilerun nmi.ko --stats=json -c 'sh load' >out 2>err || { cat out err; exit 1; }
sent=$(($(nmis) - before))
grep ^all out
# of PROBE COLUMN
of() {
	tr '{' '\n' <err | grep "$1" | sed -n "s/.*\"$2\":\([0-9]*\).*/\1/p" | head -n 1
}
nested=$(of nmi_handler nested)
handled=$(sed -n 's/^in nmi: //p' out)
# Each NMI is offered to as many handlers.
if [ "$sent" -gt 0 ] && [ $(((nested + handled) % sent)) = 0 ]; then echo "nmis: counted"; else echo "nmis: $sent, $nested, $handled"; cat err; fi
[ "${nested:-0}" -gt 0 ] && echo "nested: yes"
[ "$handled" -gt 0 ] && echo "handled: yes"
if grep -qE '"locked":[1-9]' err; then echo "locked: yes"; else echo "locked: no"; fi
gone nmi
# The traces are in the kernel's log; anything else there is a failure.
dmesg -c | grep -iE 'BUG:|Oops|panic|WARNING:|corrupt|stall|lockup' || echo 'log clean'
