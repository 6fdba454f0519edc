# Shows: exit() ends the session with status 0; the end of the command does, too; a failed command makes it 1.
# script: hello hello.stp
# script: waits idle.stp
# stdout: ^hello goodbye 0$
# stdout: ^ready guest stopped 0$
# stdout: ^ready stopped 1$

status=0
spilerun hello.ko >out || status=$?
echo $(cat out) $status
status=0
spilerun waits.ko -c 'cat /etc/hostname' >out || status=$?
echo $(cat out) $status
status=0
spilerun waits.ko -c 'false' >out 2>err || status=$?
echo $(cat out) $status
cat err
