# Shows: a module contains only the parts of the runtime that its script uses: a script without probes in code is small,
# and has no family but those of its probes. With --kbuild it is the same; with --debug too.
# stdout: ^hello: at most 100 KB in memory$
# stdout: ^hello, families:  *$
# stdout: ^probes, families: kprobe timer$
# stdout: ^arrays: there$
# stdout: ^arrays of hello: not there$
# stdout: ^by Kbuild: the same$
# stdout: ^with debug information: the same$

families() { nm "$1" | sed -n 's/.* spile_\(.*\)_family$/\1/p' | sort | tr '\n' ' '; }
loaded() { size "$1" | awk 'NR == 2 { print $4 }'; }
arrays() { nm "$1" | grep -qE ' spile_map_(get|set|hold|find|put|add|feed)' && echo there || echo "not there"; }

hello='probe begin { println("hello") exit() }'
probes='global n, a probe kernel.function("vfs_read") { n++; a[tid()] = n } probe timer.s(1) { println(n) }'
"$SPILE" -r "$RELEASE" -p4 -m hello -e "$hello" >made
"$SPILE" -r "$RELEASE" -p4 -m probes -e "$probes" >made
"$SPILE" -r "$RELEASE" -p4 --kbuild -m kbuild -e "$hello" >made
"$SPILE" -r "$RELEASE" -p4 --debug -m debug -e "$hello" >made
[ "$(loaded hello.ko)" -le 100000 ] && echo "hello: at most 100 KB in memory" || size hello.ko
echo "hello, families: $(families hello.ko)"
echo "probes, families: $(families probes.ko | sed 's/ *$//')"
echo "arrays: $(arrays probes.ko)"
echo "arrays of hello: $(arrays hello.ko)"
own() { nm "$1" | awk '$NF ~ /^spile_/ { print $NF }' | sort; }
same() { [ "$(own "$1")" = "$(own hello.ko)" ] && echo "the same" || own "$1"; }
echo "by Kbuild: $(same kbuild.ko)"
[ "$(families debug.ko)" = "$(families hello.ko)" ] && [ "$(loaded debug.ko)" -le 100000 ] && echo "with debug information: the same"
