# Shows: a reader that says all the time that it waits for a record is not woken for each. A CPU whose handlers print in the interrupt of the
# wake-up, after it, would never leave these interrupts.
# script: restless tests/guard/restless_reader.stp
# stdout: ^a few interrupts for many records$
# limit: 60

spilerun -L restless.ko >/dev/null
counts() { cat /proc/systemtap/restless/counts; }
set -- $(counts)
restless /dev/spile-restless 3
set -- $1 $2 $3 $(counts)
interrupts=$(($4 - $1)) soon=$(($5 - $2)) records=$(($6 - $3))
# Not the number of interrupts: on a busy machine the guest makes few records in the time of one.
if [ $records -gt 1000 ] && [ $((soon * 5)) -lt $records ]; then
	echo a few interrupts for many records
else
	echo "$interrupts interrupts, $soon of them soon after another, for $records records"
fi
spilerun -d restless >/dev/null 2>&1
