# Shows: with --dry-run nothing is written to a process's memory by the library's functions, C, or a program's
# variables; no signal is sent, and panic() does not stop the machine; each is counted and reported; enforced, they
# write.
# script: user_memory -g user_memory.stp
# stdout: ^observed: /tmp/aaaa$
# stdout: ^the machine continues, user int copy fault at 0x0
# stdout: ^without the writes the program ends with 0$
# stdout: ^all writes are reported$
# stdout: ^enforced: /tmp/xyze$
# stdout: ^with them it ends with 138$

# Its C writes by a macro that uses the gate.
start_armed user_memory ready --dry-run --harmless-c
run() { mkdir /tmp/aaaa; echo "$1: $(ls -d /tmp/[ax][ay][az]*)"; rmdir /tmp/[ax][ay][az]*; }
run observed
echo "the machine $(cat /proc/systemtap/user_memory/panic)"
status=0
user >/dev/null || status=$?
echo "without the writes the program ends with $status"
# The messages of each CPU reach the file by themselves.
in_time() {
	for tenth in $(seq $((100 * PATIENCE))); do
		! "$@" || return 0
		pause 0.1
	done
	cat user_memory.err
	return 1
}
# The shell may do without a process for mkdir and cat.
reported() { grep "REWRITE: observed, not rewritten by [a-z]*([0-9]*), uid 0: $1" user_memory.err >found; }
in_time reported 'user memory at .* from [-0-9]* to 100 '
in_time reported 'signal to process [0-9]* from 0 to 10 '
in_time reported 'panic() by process'
# Writes of the library and of C into the path are reported, and none as kernel memory.
five_writes() { reported 'user memory at 0x[0-9a-f]* from [-0-9]* to ' && [ "$(grep -vc 'to 100 ' found)" = 5 ]; }
in_time five_writes
! grep 'uid 0: memory at' user_memory.err
echo all writes are reported
spilerun enforce user_memory
run enforced
status=0
user >/dev/null || status=$?
echo "with them it ends with $status"
stop
