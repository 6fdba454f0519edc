# Shows: -d removes leftovers of killed loaders, but nothing that is in use; '*' removes all of them.
# script: ticks ticks.stp
# script: hello tests/lifecycle/hello.stp
# stdout: ^in use 6$
# stdout: ^removed$
# stdout: ^all removed$

start ticks ready
status=0
spilerun -d ticks 2>err || status=$?
echo "in use $status"
stop KILL
loaded ticks
spilerun -d ticks
gone ticks
echo removed
# Loaded by hand, unused.
insmod ./ticks.ko
insmod ./hello.ko
spilerun -d '*'
gone ticks
gone hello
echo all removed
