# Shows: a script with many probes is compiled with one element of their table for each kind, and its module has the same
# table as one by Kbuild, which compiles all elements. What probes differ in beside names and places is theirs: text and
# numbers of handlers that they share, locks, conditions, members of other kinds.
# In guru mode the fingerprints of the probed functions are a table that is written in the same way.
# stdout: ^compared 4$
# stdout: ^elements in C: [1-9]$
# stdout: ^elements in all: [0-9]{3,}$
# stdout: ^code in C: 0$
# stdout: ^code in all: [0-9]{2,}$
# limit: 200

export PATH=$COMPILE_ONCE:$PATH
points='kernel.function("vfs_*").call, kernel.function("vfs_*").return'
cat >plain.stp <<EOF
global n probe $points { n++ } probe end { println(n) }
EOF
cat >own.stp <<EOF
probe $points { printf("%s %s %s\n", ppfunc(), pp(), pn()) }
EOF
cat >parameters.stp <<EOF
global a probe kernel.function("vfs_*").call { a[tid()] = pp() . \$\$parms } probe begin { println(1) }
EOF
cat >kinds.stp <<EOF
global on = 1, last, at probe $points if (on) { last = pp(); at = gettimeofday_us() }
probe kernel.function("vfs_*").return { println(gettimeofday_us() - @entry(gettimeofday_us())) }
probe kprobe.function("vfs_read") { last = "kprobe" } probe kernel.data("vm_dirty_ratio").write { last = "data" }
probe kernel.trace("sched_*") { last = "trace" } probe timer.s(1) { on = !on; println(last, at) }
EOF
for script in plain own parameters kinds; do
	mkdir -p fast/$script kbuild/$script
	(cd fast/$script && "$SPILE" -r "$RELEASE" -g -w -p4 --time-report -m many ../../$script.stp >out 2>err) || cat fast/$script/err
	grep -q 'tables of the probes' fast/$script/err || echo "$script: all in C"
	(cd kbuild/$script && "$SPILE" -r "$RELEASE" -g -w -p4 --kbuild -m many ../../$script.stp >out 2>err) || cat kbuild/$script/err
	"$XTASK" compare fast/$script/many.ko kbuild/$script/many.ko && echo $script >>same
done
echo "compared $(wc -l <same)"
"$SPILE" -r "$RELEASE" -k -w -p4 -m kept plain.stp >out 2>err
kept=$(sed -n 's/.*"\(\/[^"]*\)".*/\1/p' err | head -1)
echo "elements in C: $(grep -c '	\.kind = ' "$kept/script.c")"
echo "elements in all: $("$SPILE" -r "$RELEASE" -w -p3 -m kept plain.stp 2>/dev/null | grep -c '	\.kind = ')"
"$SPILE" -r "$RELEASE" -g -k -w -p4 -m guru plain.stp >out 2>err
kept=$(sed -n 's/.*"\(\/[^"]*\)".*/\1/p' err | head -1)
echo "code in C: $(grep -c 'code_[0-9]*\[' "$kept/script.c")"
echo "code in all: $("$SPILE" -r "$RELEASE" -g -w -p3 -m guru plain.stp 2>/dev/null | grep -c 'code_[0-9]*\[')"
