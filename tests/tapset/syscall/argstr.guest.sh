# Shows: name and argstr of some 250 system calls as SystemTap's library prints them, with flags, structures and unreadable
# arguments; tests/fixtures/shown makes the calls and has the expected output. A call of number -1 has no name, and is not a
# return from a signal.
# script: shown -DSTP_NO_OVERLOAD tests/tapset/syscall/argstr.stp
# stdout: ^returns 1, of another name 0, nd_syscall otherwise 0; from signals 1, unnamed 1$
# stdout: ^shown 2[0-9][0-9], different 0$
# limit: 60

mkdir -p /tmp
spilerun shown.ko -c shown >traced.txt
grep '^returns' traced.txt
awk '
FNR == 1 { file++ }
file == 1 { want[++wanted] = $0; next }
/^personality \(0xffffffff\)$/ { between = !between; next }
between { have[++had] = $0 }
END {
	for (i = 1; i <= wanted || i <= had; i++)
		if (want[i] != have[i]) {
			different++
			print "expected " want[i]
			print "  but is " have[i]
		}
	print "shown " wanted ", different " different + 0
}' /tmp/expected.txt traced.txt
