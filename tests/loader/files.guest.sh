# Shows: -o with %, -S and SIGUSR2, --bulk, -D and -R: where output goes, and that none of it is missing.
# script: ticks ticks.stp
# script: flood flood.stp
# limit: 60
# stdout: ^year ok$
# stdout: ^rotated ok$
# stdout: ^bulk ok$
# stdout: ^daemon ok$
# stdout: ^two at once$

spilerun ticks.ko -T 0.3 -o 'log-%Y'
[ "$(tail -n 1 log-2*)" = stopped ]
echo year ok

spilerun flood.ko -T 4 -o big -S 1
files=$(ls big.* | wc -l)
[ "$files" -gt 2 ]
cat $(ls big.* | sort -t . -k 2 -n) | grep '^line' | cut -d ' ' -f 2 >numbers
seq "$(wc -l <numbers)" | cmp - numbers
rm big.*
spilerun ticks.ko -o hand -S 1 2>err &
loader=$!
wait_for hand.0 tick
kill -s USR2 $loader
wait_for hand.1 tick
kill -s INT $loader
wait $loader
[ "$(tail -n 1 hand.1)" = stopped ]
echo rotated ok

spilerun ticks.ko --bulk -T 0.5
[ "$(cat stpd_cpu* | grep -c -e ready -e stopped)" = 2 ]
grep -q tick stpd_cpu*
echo bulk ok

pid=$(spilerun ticks.ko -D -o background)
kill -s INT "$pid"
for tenth in $(seq 50); do loaded ticks || break; pause 0.1; done
gone ticks
wait_for background stopped
status=0
spilerun no_such_script -D -o background 2>err || status=$?
[ "$status" = 3 ]
echo daemon ok

start ticks ready
spilerun -R ticks.ko -T 0.3 >second
[ "$(tail -n 1 second)" = stopped ]
stop INT
gone ticks
echo two at once
