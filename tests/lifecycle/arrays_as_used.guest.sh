# Shows: CPUs take memory for an array of histograms as they use its elements, not for all of them (22 MB for each CPU here). A CPU that
# finds no memory ready, as one run uses 9,000 elements, loses nothing.
# script: used -w -DMAXACTION=1000000 -DSTP_NO_OVERLOAD tests/lifecycle/arrays_as_used.stp
# stdout: ^little$
# stdout: ^burst$
# stdout: ^as used$
# stdout: ^9000 elements 36000 values sum 909000 zeros 180$
# stdout: ^freed$
# absent: BUG:|Call Trace

available() { echo 3 >/proc/sys/vm/drop_caches; sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo; }
read_on() { taskset "$1" dd if=/dev/zero of=/dev/null bs="$2" count=1 2>/dev/null; }
before=$(available)
start_armed used begun
one=$(available)
if [ $((before - one)) -lt 36000 ]; then echo little; else echo "more than a reserve: $((before - one)) KB"; fi
read_on 1 190
read_on 2 190
echo burst
bytes=100
while [ $bytes -lt 190 ]; do
	read_on 1 $bytes
	read_on 2 $bytes
	bytes=$((bytes + 1))
done
two=$(available)
if [ $((one - two)) -gt 12000 ]; then echo as used; else echo "18,000 histograms took only $((one - two)) KB"; fi
stop
cat used.out
gone used
left=$((before - $(available)))
if [ $left -lt 12000 ]; then echo freed; else echo "not freed: $left KB"; fi
