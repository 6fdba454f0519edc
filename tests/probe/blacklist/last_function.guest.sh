# Shows: a kprobe inside the last function of a module does not make the kernel read past the end of the module's code, which
# since 6.4 no other memory follows: it is refused there, with a message. Its entry and its return, which ftrace serves, can be
# probed, and before 6.4 all of it; the module may be loaded before or after the session's start.
# script: last last_function.stp
# stdout: ^loaded before: entry 5 return 6, inside as expected$
# stdout: ^loaded after: entry 7 return 8, inside as expected$
# absent: ^(unexpected|other message)
inside() {
	hits=$(grep -c "^inside $1" out) || true
	refused=$(grep -c 'WARN.*last.c:101.*it is in the last function of the module' err) || true
	case $(uname -r) in
	5.* | 6.[0-3].*) expected='1 0' ;;
	# Newer kernels fill the rest of the page with int3.
	6.[4-9].* | 6.1[0-2].*) expected='0 1' ;;
	*) [ "$hits" = 1 ] && expected='1 0' || expected='0 1' ;;
	esac
	[ "$hits $refused" = "$expected" ] && echo inside as expected || { echo "hits $hits, refused $refused" >&2; cat out err >&2; }
}
modprobe edge
spilerun last.ko -c 'echo 5 >/sys/module/edge/parameters/last' >out 2>err || true
echo "loaded before: $(grep 'entry\|return' out | tr '\n' ' ' | sed 's/ $//'), $(inside 5)"
rmmod edge
spilerun last.ko -c 'modprobe edge; echo 7 >/sys/module/edge/parameters/last; rmmod edge' >out 2>err || true
echo "loaded after: $(grep 'entry\|return' out | tr '\n' ' ' | sed 's/ $//'), $(inside 7)"
