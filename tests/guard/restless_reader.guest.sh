# Shows: a reader that says all the time that it waits for a record is not woken for each: the CPU whose handlers print in the interrupt
# of the wake-up, after it, would never leave these interrupts.
# script: restless tests/guard/restless_reader.stp
# stdout: ^a few interrupts$
# limit: 60

spilerun -L restless.ko >/dev/null 2>&1
exits() { cat /proc/systemtap/restless/exits; }
before=$(exits)
restless /dev/spile-restless 3
count=$(($(exits) - before))
# Each CPU may have one in a quarter of a millisecond.
[ $count -gt 0 ] && [ $count -lt 40000 ] && echo a few interrupts || echo "$count interrupts"
spilerun -d restless >/dev/null 2>&1
