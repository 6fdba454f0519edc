# Shows: a script with few system calls has the functions for their arguments only, and no more than if it printed them
# itself; one with a wildcard has them all. What it shows is checked by argstr.stp.
# stdout: ^read: __syscall_argstr __syscall_show $
# stdout: ^mmap: __syscall_argstr __syscall_mmap __syscall_mmap_flags __syscall_prot __syscall_show $
# stdout: ^read, in strace's form: __syscall_argstr __syscall_show $
# stdout: ^an alias of an alias: __syscall_argstr __syscall_show $
# stdout: ^a function that shows any: [12][0-9][0-9] functions$
# stdout: ^the same in a file of -I: [12][0-9][0-9] functions$
# stdout: ^all: [12][0-9][0-9] functions$

functions() {
	"$SPILE" -p2 "$@" -e "probe syscall.$call { println(argstr) }" | sed -n 's/^\(__syscall_[a-z0-9_]*\):.*/\1/p' | sort
}
call=read
echo "read: $(functions | tr '\n' ' ')"
call=mmap2
echo "mmap: $(functions | tr '\n' ' ')"
call=read
echo "read, in strace's form: $(functions --syscall-style=strace | tr '\n' ' ')"
cat >alias.stp <<'END'
probe reads = nd_syscall.read { shown = argstr }
probe reads { println(shown) }
END
echo "an alias of an alias: $("$SPILE" -p2 alias.stp | sed -n 's/^\(__syscall_[a-z0-9_]*\):.*/\1/p' | sort | tr '\n' ' ')"
any=$("$SPILE" -p2 -e 'function any() { return __syscall_argstr(kinds()) } function kinds() { return 1 } probe syscall.read { println(any()) }' |
	grep -c '^__syscall_[a-z0-9_]*:')
echo "a function that shows any: $any functions"
mkdir library
echo 'function any() { return __syscall_argstr(kinds()) } function kinds() { return 1 }' >library/any.stp
any=$("$SPILE" -p2 -I library -e 'probe syscall.read { println(any()) }' | grep -c '^__syscall_[a-z0-9_]*:')
echo "the same in a file of -I: $any functions"
call='*'
echo "all: $(functions | wc -l) functions"
