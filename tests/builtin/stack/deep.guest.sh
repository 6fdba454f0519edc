# Shows: stacks of up to 128 frames are whole as keys, as values and in statistics; printed later they are as printed at once. A
# deeper one is counted, and so is one for which there is no memory; the others stay exact. MAXBACKTRACE is honoured.
# modules: ptlrpc
# script: deep -DMAXACTION=1000000 deep.stp
# script: few -DMAXBACKTRACE=20 deep.stp
# script: full -DMAXACTION=1000000 -DMAXSTACKBYTES=4096 deep.stp
# stdout: ^all as expected$
# limit: 60

wrong() {
	echo "$@"
	cat *.out *.err
	exit 1
}
deep='for depth in 60 100 60 150; do echo $depth >/sys/module/ptlrpc/parameters/depth; done'
# section NAME LINE: the text after that line, up to the next heading.
section() {
	awk -v head="$2" '/^(at once|by name|stored|stored by name) [0-9]+$/ || /^end$/ { on = $0 == head; next } on' $1.out
}

spilerun deep.ko -c "sh -c '$deep'" >deep.out 2>deep.err || wrong "status $?"
[ $(grep -c '^is a key 1, is a value 1$' deep.out) = 4 ] || wrong "in the arrays"
for hit in 1 2 3 4; do
	section deep "at once $hit" >now
	section deep "stored $hit" >later
	cmp -s now later || wrong "hit $hit: $(diff now later | head -n 5)"
	section deep "by name $hit" >now
	section deep "stored by name $hit" >later
	cmp -s now later || wrong "hit $hit by name: $(diff now later | head -n 5)"
	wc -l <now >>lines
done
set -- $(cat lines)
one=$1 two=$2 three=$3 four=$4
[ "$one" = "$three" ] && [ $((two - one)) = 40 ] && [ "$one" -gt 64 ] && [ "$four" = 128 ] || wrong "frames: $(cat lines)"
grep -Eq '^most 2: .*;ptlrpc_bottom;$' deep.out || wrong "sorted"
grep -Eq '^at 2: .*(entry_SYSCALL_64|do_syscall_64).*;60 downs;ptlrpc_bottom;$' deep.out || wrong "folded"
grep -Eq '^at 1: .*(entry_SYSCALL_64|do_syscall_64).*;100 downs;ptlrpc_bottom;$' deep.out || wrong "folded, 100"
grep -q '^WARNING: .* stacks had more than 128 frames: they lack the outermost$' deep.err || wrong "deeper"

spilerun few.ko -c "sh -c '$deep'" >few.out 2>few.err || wrong "few: status $?"
[ $(section few 'stored 2' | wc -l) = 20 ] && [ $(section few 'at once 2' | wc -l) = 20 ] || wrong "MAXBACKTRACE"
! grep -q WARNING few.err || wrong "MAXBACKTRACE is reported"

spilerun full.ko -c "sh -c '$deep'" >full.out 2>full.err || wrong "full: status $?"
grep -Eq '^WARNING: the memory for stacks in arrays \(4096 bytes\) was full: elements for new keys were not made 2 times' full.err || wrong "keys"
grep -Eq '^WARNING: the memory for stacks in arrays .* 1 values lack the outermost frames' full.err || wrong "values"
grep -Eq '^at 2: .*(entry_SYSCALL_64|do_syscall_64).*;60 downs;ptlrpc_bottom;$' full.out || wrong "kept"
echo all as expected
