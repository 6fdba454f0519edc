# Shows: --budget estimates the cost of a script before it runs, by hits counted without running a handler. One within the
# budget runs; one above it does not, or handles one in N hits, which is reported; skipped hits are counted, and the
# sum is exact.
# script: cheap tests/guard/budget/cheap.stp
# script: expensive -DSTP_NO_OVERLOAD tests/guard/budget/expensive.stp
# stdout: ^within: ran$
# stdout: ^refused: 1, no output$
# stdout: ^estimate: about [0-9.]*% of the CPUs' time$
# stdout: ^far above the budget: 1$
# stdout: ^sampled: ran, one in [0-9]* reported$
# stdout: ^factor: right$
# stdout: ^sum: exact$
# stdout: ^hits counted before: not in the statistics$
# limit: 120
# alone: yes

spilerun cheap.ko --budget 50 >out 2>err
echo "within: $(grep -x ran out)"
grep -q '^COST: about .*; the budget is 50%' err || cat err

while :; do dd if=/dev/zero of=/dev/null bs=1 count=20000 2>/dev/null; done &
load=$!
# The cost depends on the speed of the loop on this machine.
spilerun expensive.ko --budget 0.0001 >out 2>err || true
budget=$(sed -n 's/^COST: about \([0-9.]*\)% .*/\1/p' err | awk '{ print $1 / 4 }')
status=0
spilerun expensive.ko --budget $budget >out 2>err || status=$?
echo "refused: $status, $([ -s out ] && cat out || echo no output)"
grep -o 'about [0-9.]*% of the CPUs. time' err | tail -n 1 | sed 's/^/estimate: /'
gone expensive
status=0
spilerun expensive.ko --budget 0.0001,sample >out 2>err || status=$?
echo "far above the budget: $status"
spilerun expensive.ko --budget $budget,sample --stats=json >out 2>err || cat err
factor=$(sed -n 's/^WARNING: one in \([0-9]*\) hits.*/\1/p' err)
echo "sampled: $(grep -x ran out), one in ${factor:-nothing} reported"
kill $load
grep '^{"probes"' err | sed 's/{"point"/\n{/g' | grep 'vfs_read' | grep -v '[.]return' | awk -F'"hits":' -v factor=$factor '{
	n = split($2, part, ","); hits = part[1]; sum = 0
	for (i = 2; i <= 8; i++) { split(part[i], pair, ":"); sum += pair[2]; count[pair[1]] = pair[2] }
	handled = count["\"handled\""]; sampled = count["\"sampled\""]; stopped = count["\"stopped\""]
	expected = handled * (factor - 1)
	print "factor: " (handled > 0 && sampled > expected * 0.7 - 3 * factor && sampled < expected * 1.3 + 3 * factor ? "right" : handled " handled, " sampled " sampled")
	print "sum: " (hits == sum ? "exact" : hits " of " sum)
	print "hits counted before: " (stopped < sampled ? "not in the statistics" : stopped)
}'
