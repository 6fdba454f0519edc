# Shows: arming that takes long can be ended at any time, by ^C and by killing the loader; meanwhile it says how far it is, and
# others can ask for it. Nothing stays behind.
# script: inlined tests/probe/many/inlined.stp
# stdout: ^asked: starting$
# stdout: ^told$
# stdout: ^interrupted: soon$
# stdout: ^ended$
# stdout: ^killed: soon$
# stdout: ^kernel: quiet$
# limit: 120

# Seconds since boot, in hundredths.
now() { cut -d' ' -f1 /proc/uptime | tr -d .; }
# soon NAME BEGUN
soon() { [ $(($(now) - $2)) -lt $((200 * SLOWNESS)) ] && echo "$1: soon" || echo "$1: $(($(now) - $2))0 ms"; }

start inlined began
wait_for inlined.err 'probes are prepared after' && echo told >told
spilerun status inlined | grep -o starting | sed 's/^/asked: /'
cat told
begun=$(now)
kill -INT $loader
wait $loader || true
soon interrupted $begun
grep ended inlined.out
gone inlined

start inlined began
sleep 1
begun=$(now)
kill -KILL $loader
wait $loader || true
soon killed $begun
dmesg | grep -E 'WARNING|BUG|Oops|Call Trace|stall' || echo kernel: quiet
