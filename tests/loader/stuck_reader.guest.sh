# Shows: a reader that does not read delays neither the first signal, which disarms, nor the second, which drops pending output
# and removes the module.
# script: ticks ticks.stp
# limit: 60
# stdout: ^waits$
# stdout: ^dropped 0$

mkfifo pipe
sleep 1000 <pipe &
sleeper=$!
spilerun ticks.ko >pipe 2>err &
loader=$!
armed ticks
# 110 bytes 100 times a second fill a pipe of 64 KB in 6 seconds.
sleep 10
kill -s INT $loader
sleep 0.5
loaded ticks
echo waits
kill -s INT $loader
status=0
wait $loader || status=$?
grep -q dropped err
echo "dropped $status"
gone ticks
kill $sleeper
