# Shows: an exception in the middle of a handler (a watchpoint, in place of an NMI), whose own handler needs the stripe
# that the interrupted one holds on the same CPU: it is skipped at once as nested, without waiting, and the interrupted
# one continues.
# script: exception -g -DSTP_NO_OVERLOAD -DMAXTRYLOCK=1 -DTRYLOCKDELAY=1000000 tests/guard/nested_exception.stp
# stdout: ^all: yes$
# stdout: ^nested: yes$
# stdout: ^locked: no$
# limit: 120

# Waiting would take a second for each of them.
spilerun exception.ko --stats=json -c 'dd if=/dev/zero of=/dev/null bs=1 count=2000; echo 33 >/proc/sys/vm/dirty_ratio' 2>err || { cat err; exit 1; }
for column in nested locked; do
	if grep -qE "\"$column\":[1-9]" err; then echo "$column: yes"; else echo "$column: no"; fi
done
cat err
gone exception
