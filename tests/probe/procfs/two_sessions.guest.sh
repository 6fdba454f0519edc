# Shows: two sessions of one script have separate directories, named after their modules; the end of one does not affect the
# other's, and the kernel logs nothing.
# script: twice tests/probe/procfs/two_sessions.stp
# stdout: ^two: yes yes$
# stdout: ^one: yes$
# stdout: ^none: 0$
# absent: WARNING|BUG:|Call Trace

own() {
	for directory in /proc/systemtap/twice*; do
		if [ "$(cat "$directory/a/b")" = "${directory##*/}" ]; then echo yes; else echo no; fi
	done | tr '\n' ' ' | sed 's/ $//'
}
spilerun -R twice.ko >1.out 2>1.err &
first=$!
wait_for 1.out begun
spilerun -R twice.ko >2.out 2>2.err &
second=$!
wait_for 2.out begun
for tenth in $(seq 100); do [ "$(ls -d /proc/systemtap/twice*/a/b 2>/dev/null | wc -l)" != 2 ] || break; pause 0.1; done
echo "two: $(own)"
kill -INT $second
wait $second
echo "one: $(own)"
kill -INT $first
wait $first
echo "none: $(ls /proc/systemtap | grep -c twice)"
