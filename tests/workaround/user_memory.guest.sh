# Shows: with --dry-run nothing is written to a process's memory by the library's functions, C, or a program's variables; no signal is
# sent, and panic() does not stop the machine; each is counted and told; enforced, they write.
# script: user_memory -g user_memory.stp
# stdout: ^observed: /tmp/aaaa$
# stdout: ^the machine goes on, user int copy fault at 0x0
# stdout: ^the program ends well: 0$
# stdout: ^told$
# stdout: ^enforced: /tmp/xyze$
# stdout: ^the program ends by its signal: 138$

start_armed user_memory ready --dry-run
run() { mkdir /tmp/aaaa; echo "$1: $(ls -d /tmp/[ax][ay][az]*)"; rmdir /tmp/[ax][ay][az]*; }
run observed
echo "the machine $(cat /proc/systemtap/user_memory/panic)"
status=0
user >/dev/null || status=$?
echo "the program ends well: $status"
# What a string and a number write, one after the other.
[ "$(grep -c 'not rewritten by mkdir([0-9]*), uid 0: user memory at 0x[0-9a-f]* from' user_memory.err)" = 5 ]
grep -q 'not rewritten by user([0-9]*), uid 0: user memory at .* from .* to 100 ' user_memory.err
grep -q 'not rewritten by user([0-9]*), uid 0: signal to process [0-9]* from 0 to 10 ' user_memory.err
grep -q 'not rewritten by cat([0-9]*), uid 0: panic() by process' user_memory.err
echo told
spilerun enforce user_memory
run enforced
status=0
user >/dev/null || status=$?
echo "the program ends by its signal: $status"
stop
