# Shows: stacks of programs without frame pointers, from kernel probes, timers and perf samples: chains, recursion, aligned stacks,
# signals, libraries, C++, code made at run time; of a stripped program; stored ones, when the process is gone; of the system's.
# script: chains tests/builtin/ustack/chains.stp
# script: stored tests/builtin/ustack/stored.stp
# script: samples tests/builtin/ustack/samples.stp
# stdout: ^all as expected$
# limit: 120

mkdir -p /tmp
wrong() {
	echo "$@"
	cat $name.out $name.err
	exit 1
}
# chain NAME COMMAND: the functions of its last stack, innermost first; "-" for those without a name.
chain() {
	name=$1
	spilerun chains.ko -c "$2" >$name.all 2>$name.err || wrong "$name: status $?"
	awk '/^begin$/ { text = "" } { text = text $0 "\n" } END { printf "%s", text }' $name.all >$name.out
	sed -n 's/^ 0x[0-9a-f]* : //p' $name.out | sed 's/^0x.*/-/; s/+0x.*//' | tr '\n' ' ' | tr -s '-' >$name.names
}
# frames NAME PATTERN: fails if the names of the last stack do not match.
frames() {
	grep -Eq "^$2\$" $1.names || wrong "$1: $(cat $1.names), not $2"
}
# From main() on there are two functions of libc, of which only one has a name.
begin='main (- )?__libc_start_main[^ ]* _start '
chain chain 'stacks chain'
frames chain "write say chain_inner chain_middle chain_outer $begin"
chain wide 'stacks wide'
frames wide "write say chain_inner wide $begin"
# The table of a library that is opened at run time is made when it is first found in a stack: $PATIENCE s later.
chain library "sh -c 'stacks library; sleep $PATIENCE; stacks library'"
frames library "write say called_back (- )?library_outer library_user $begin"
chain cxx "sh -c 'stacks cxx; sleep $PATIENCE; stacks cxx'"
frames cxx "write say called_back shop::Counter::serve\(.*\)[^+]* (int )?shop::twice<.*>\(.*\).* cxx_outer library_user $begin"
chain made 'stacks made'
frames made "write say called_back made_at_run_time made_user $begin"
chain signal 'stacks signal'
frames signal "write say chain_inner on_signal ([^ ]+ )*(- )*(gsignal|raise) signal_inner signal_outer $begin"
# The instruction at which a signal came, not the one before it.
chain fault 'stacks fault'
frames fault "write say chain_inner on_fault ([^ ]+ )*faults fault_outer $begin"
# The frames of ld.so while it binds a function: _dl_fixup(), and the code that has called it, whose frame is found by rbx.
chain lazy "sh -c 'stacks lazy; sleep $PATIENCE; stacks lazy'"
frames lazy "write say called_back ([^ ]+ )*library_lazy library_user $begin"
chain deep 'stacks deep 100'
[ $(tr ' ' '\n' <deep.names | grep -c '^deep_down$') = 100 ] || wrong "deep"
frames deep "write say .* $begin"
chain deeper 'stacks deep 200'
[ $(grep -c ' : ' deeper.out) = 128 ] || wrong "deeper: not the most frames"
grep -q '^WARNING: [1-9][0-9]* stacks had more than 128 frames' deeper.err || wrong "deeper: not reported"
# Without symbols there are as many frames, in that file.
chain stripped 'stacks_stripped chain'
[ $(grep -c 'bin/stacks_stripped+0x' stripped.out) = 6 ] || wrong "stripped"

name=chain
grep -Eq '^name write in libc.so.6, build-id [0-9a-f]{40}$' chain.out || wrong "name"
grep -Eq '^data write\+0x[0-9a-f]+/0x[0-9a-f]+ \[/[^ ]*libc.so.6\]$' chain.out || wrong "data"
grep -Eq '^callers 1 0$' chain.out || wrong "callers"

name=stored
spilerun stored.ko -c "sh -c 'stacks chain; stacks chain; stacks library; sleep $PATIENCE; stacks library; stacks deep 100'" >stored.out 2>stored.err || wrong "stored: status $?"
grep -Eq '^folded all;_start;.*;main;chain_outer;chain_middle;chain_inner;say;write [12]$' stored.out || wrong "folded"
grep -Eq '^ 0x[0-9a-f]+ : chain_middle\+0x[0-9a-f]+/0x[0-9a-f]+ \[/usr/bin/stacks\]$' stored.out || wrong "printed"
grep -Eq '^folded all;_start;.*;main;(deep_down;){100}.*;write 1$' stored.out || wrong "folded, deep"
grep -Eq '^library_outer\+0x[0-9a-f]+/0x[0-9a-f]+ \[/usr/lib/stacks/libstacks.so\]$' stored.out || wrong "text"

name=samples
spilerun samples.ko -c 'stacks spin 2' >samples.out 2>samples.err || wrong "samples: status $?"
for kind in timer perf; do
	grep -Eq "^$kind _start;.*;main;spin_outer;spin_inner [0-9]+\$" samples.out || wrong "$kind"
done

# A program of the host.
chain system 'getfattr --version'
frames system 'write _IO_file_write (- )*_IO_do_write (- )*exit (- )?__libc_start_main[^ ]* - '
grep -q '\[/usr/bin/getfattr+0x' system.out || wrong "system"
echo all as expected
