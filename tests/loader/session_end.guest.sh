# Shows: a session ends with its time limit (-T), with the process of -x, and with the reader of its output; each properly, with
# status 0 and its module removed. The ways in which a command of -c can end are distinguished.
# script: ticks ticks.stp
# stdout: ^time: stopped 0$
# stdout: ^process: stopped 0$
# stdout: ^reader: ready tick gone$
# stdout: ^builtin: 3 Child process exited with status 3$
# stdout: ^killed: 1 Child process exited with signal 9 .SIGKILL.$

spilerun ticks.ko -T 0.3 >out
echo "time: $(tail -n 1 out) $?"
gone ticks

# The process ends after the session has begun, however long that takes.
sleep 1000 &
process=$!
spilerun ticks.ko -x $process >of_process &
loader=$!
wait_for of_process tick
kill $process
status=0
wait $loader || status=$?
echo "process: $(tail -n 1 of_process) $status"
gone ticks

spilerun ticks.ko | head -n 2 | cut -d ' ' -f 1 >out
for tenth in $(seq 50); do loaded ticks || break; pause 0.1; done
gone ticks
echo "reader: $(echo $(cat out)) gone"

spilerun ticks.ko -c 'exit 3' >out 2>err || [ $? = 1 ]
echo "builtin: 3 $(sed -n 's/^WARNING: //p' err)"
status=0
spilerun ticks.ko -c 'kill -9 $$' >out 2>err || status=$?
echo "killed: $status $(sed -n 's/^WARNING: //p' err)"
gone ticks
