# Shows: with --dry-run nothing is written to a process's memory by the library's functions, C, or a program's
# variables; no signal is sent, and panic() does not stop the machine; each is counted and reported; enforced, they
# write.
# script: user_memory -g user_memory.stp
# stdout: ^observed: /tmp/aaaa$
# stdout: ^the machine continues, user int copy fault at 0x0
# stdout: ^the program ends well: 0$
# stdout: ^told$
# stdout: ^enforced: /tmp/xyze$
# stdout: ^the program ends by its signal: 138$

# Its C writes by a macro that uses the gate.
start_armed user_memory ready --dry-run --harmless-c
run() { mkdir /tmp/aaaa; echo "$1: $(ls -d /tmp/[ax][ay][az]*)"; rmdir /tmp/[ax][ay][az]*; }
run observed
echo "the machine $(cat /proc/systemtap/user_memory/panic)"
status=0
user >/dev/null || status=$?
echo "the program ends well: $status"
wait_for user_memory.err 'signal to process'
# The shell may do without a process for mkdir and cat.
tells() {
	grep "REWRITE: observed, not rewritten by [a-z]*([0-9]*), uid 0: $1" user_memory.err >found || { cat user_memory.err; exit 1; }
}
tells 'user memory at .* from [-0-9]* to 100 '
tells 'signal to process [0-9]* from 0 to 10 '
tells 'panic() by process'
# Writes of the library and of C into the path are reported, and none as kernel memory.
tells 'user memory at 0x[0-9a-f]* from [-0-9]* to '
[ "$(grep -vc 'to 100 ' found)" = 5 ] || { cat user_memory.err; exit 1; }
! grep 'uid 0: memory at' user_memory.err
echo told
spilerun enforce user_memory
run enforced
status=0
user >/dev/null || status=$?
echo "the program ends by its signal: $status"
stop
