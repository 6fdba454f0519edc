# Shows: the examples that draw stacks of programs print folded lines, with the functions of a program that has no frame pointers.
# script: flame -DMAXACTION=1000000 examples/flame.stp
# script: offwake -DMAXACTION=1000000 examples/offwake.stp
# stdout: ^all as expected$
# limit: 90

spilerun flame.ko -c 'stacks spin 2' >flame.out 2>flame.err || { cat flame.err; exit 1; }
grep -Eq '^stacks;_start;.*;main;spin_outer;spin_inner(;[^ ]*_\[k\])* [0-9]+$' flame.out || { cat flame.out flame.err; exit 1; }
spilerun offwake.ko -c 'stacks wait' >offwake.out 2>offwake.err || { cat offwake.err; exit 1; }
# The program waits for 200 ms, until its other thread ends it.
grep -Eq '^stacks;.*waits;wait_outer;.*_\[k\];--;.*_\[k\];.*;wake_outer;.*main;.*;stacks [12][0-9]{5}$' offwake.out ||
	{ cat offwake.out offwake.err; exit 1; }
# There are only folded lines.
if grep -Ev '^[^;]+(;[^;]+)* [0-9]+$' flame.out offwake.out; then
	echo 'these are no folded stacks'
	exit 1
fi
echo all as expected
