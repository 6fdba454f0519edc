# Shows: a reader that says all the time that it waits for a record is not woken for each. A CPU whose handlers print in the interrupt of the
# wake-up, after it, would never leave these interrupts.
# script: restless tests/guard/restless_reader.stp
# stdout: ^a few interrupts for many records$
# limit: 60

spilerun -L restless.ko >/dev/null
counts() { cat /proc/systemtap/restless/counts; }
set -- $(counts)
restless /dev/spile-restless 3
set -- $1 $2 $(counts)
interrupts=$(($3 - $1)) records=$(($4 - $2))
if [ $records -gt 1000 ] && [ $((interrupts * 5)) -lt $records ]; then
	echo a few interrupts for many records
else
	echo "$interrupts interrupts for $records records"
fi
spilerun -d restless >/dev/null 2>&1
