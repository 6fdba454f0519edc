# Shows: the balance of events: each reason for which a hit can miss its handler is forced and reported by --stats under its own
# name, and the columns of every probe add up to its hits.
# script: balance -DMAXTRYLOCK=1 -DTRYLOCKDELAY=1 -DMAXSKIPPED=1000000000 -DMAXACTION=1000000000 -DSTP_NO_OVERLOAD tests/guard/balance.stp
# script: shallow -DMINSTACKSPACE=32600 -DMAXSKIPPED=1000000000 tests/guard/balance_stack.stp
# script: busy -DSTP_OVERLOAD_THRESHOLD=100000 -DSTP_OVERLOAD_INTERVAL=100000000 tests/guard/balance_overload.stp
# stdout: ^filtered: yes$
# stdout: ^nested: yes$
# stdout: ^locked: yes$
# stdout: ^returns_missed: yes$
# stdout: ^records_lost: yes$
# stdout: ^low_stack: yes$
# stdout: ^stopped: yes$
# stdout: ^sums: [1-9][0-9]* right$
# stdout: ^reported in one line$
# stdout: ^overload reported$
# limit: 120
# alone: yes

# hits=sum of the parts, for every probe of the JSON line in FILE.
sums() {
	grep -h '^{"probes"' "$@" | sed 's/{"point"/\n{/g' | awk -F'"hits":' '
		NF > 1 {
			n = split($2, part, ","); hits = part[1]; sum = 0
			for (i = 2; i <= 9; i++) { split(part[i], pair, ":"); sum += pair[2] }
			if (sum != hits) { print "wrong: " $0; wrong = 1 } else right++
		}
		END { if (!wrong) print "sums: " right " right" }'
}
# some COLUMN FILE...: whether a probe has a value above 0 there.
some() {
	column=$1
	shift
	if grep -hqE "\"$column\":[1-9]" "$@"; then echo "$column: yes"; else echo "$column: no"; cat "$@"; fi
}

spilerun balance.ko --stats=json -s 1 -o balance.out -c '
	for worker in 1 2 3 4; do
		(dd if=/dev/zero of=/dev/null bs=1 count=3000; sleep 0.3; sleep 0.3) &
	done
	wait' 2>balance.err
spilerun shallow.ko --stats=json -c 'cat /etc/hostname /etc/hostname' >shallow.out 2>shallow.err
spilerun busy.ko -c 'dd if=/dev/zero of=/dev/null bs=1 count=200000' >busy.out 2>busy.err || true
for column in filtered nested locked returns_missed records_lost; do
	some $column balance.err
done
some low_stack shallow.err
some stopped balance.err shallow.err
sums balance.err shallow.err
[ "$(grep -c 'hits were missed: ' balance.err)" = 1 ] && echo reported in one line
grep -q 'probe overhead .* exceeded threshold' busy.err && echo overload reported
gone balance
