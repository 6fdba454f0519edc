# Shows: CPUs take memory for an array of histograms as they use its elements, not for all of them (22 MB for each CPU here). A CPU that
# finds no memory ready, as one run uses 9,000 elements, loses nothing.
# script: used -w -DMAXACTION=1000000 -DSTP_NO_OVERLOAD tests/lifecycle/arrays_as_used.stp
# stdout: ^little$
# stdout: ^burst$
# stdout: ^as used$
# stdout: ^9000 elements 36000 values sum 909000 zeros 180$
# absent: BUG:|Call Trace

memory() { spilerun status used | sed -n 's/.*skipped, \([0-9]*\) KB$/\1/p'; }
read_on() { taskset "$1" dd if=/dev/zero of=/dev/null bs="$2" count=1 2>/dev/null; }
start_armed used begun
one=$(memory)
if [ "$one" -lt 36000 ]; then echo little; else echo "more than a reserve: $one KB"; fi
read_on 1 190
read_on 2 190
echo burst
bytes=100
while [ $bytes -lt 190 ]; do
	read_on 1 $bytes
	read_on 2 $bytes
	bytes=$((bytes + 1))
done
# The reserve is filled a moment later.
for tenth in $(seq $((100 * PATIENCE))); do
	two=$(memory)
	[ $((two - one)) -le 12000 ] || break
	pause 0.1
done
if [ $((two - one)) -gt 12000 ]; then echo as used; else echo "18,000 histograms took only $((two - one)) KB"; fi
stop
cat used.out
gone used
