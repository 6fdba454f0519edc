# Shows: called as stap, spile works with programs that run SystemTap.
# limit: 240
# stdout: ^version 5\.6$
# stdout: ^version 5\.6 of spile$
# stdout: ^-l 0 kernel\.function\("vfs_read@fs/read_write\.c:[0-9]+"\)$
# stdout: ^-L 0 kernel\.function\("vfs_read@.* \$count:size_t
# stdout: ^none 1$
# stdout: ^-p1 0$
# stdout: ^parse error: expected .* \[E0033\]; semantic error: type mismatch.* \[E0101\]; WARNING: .* \[W0[0-9]*\]$
# stdout: ^said semantic error: unable to find local 'foo' in vfs_read \(fs/read_write\.c:[0-9]+\) \(alternatives: .*\$count.*\) \[E0121\]$
# stdout: ^said semantic error: unable to find member 'foo' for struct file \(alternatives: .*f_mode.*\) \[E0125\]$
# stdout: ^said semantic error: no match \(similar functions: .*vfs_read.*\) \[E0204\]$
# stdout: ^said semantic error: unresolved function printx \(similar: .*print.*\) \[E0103\]$
# stdout: ^said semantic error: probe point mismatch \(similar: function.*\) \[E0201\]$
# stdout: ^said semantic error: invalid suffix for probe \[E0201\]$
# stdout: ^said semantic error: write to target variable not permitted; need stap -g \[E0401\]$
# stdout: ^said semantic error: variable 'a' modified during 'foreach' iteration \[E0150\]$
# stdout: ^said semantic error: cannot 'break' outside loop \[E0108\]$
# stdout: ^passes Pass 1 Pass 2 Pass 3 Pass 4$
# stdout: ^lines first 4 of 4 again 4 of 4$
# stdout: ^counted again Pass 2: analyzed script: 2 probes, 1 function, 0 embeds, 1 global using NUMBER, in TIME$
# stdout: ^-vv 1$
# stdout: ^built 0 drive\.ko drive\.ko$
# stdout: ^unnamed stap_[0-9a-f_]+\.ko$
# stdout: ^stdin 0$
# stdout: ^noted 0 7$
# stdout: ^make 0$
# stdout: ^example 0 # functions$
# stdout: ^kernel\.function\("vfs_read@
# stdout: ^no example 1$
# stdout: ^empty 1 input file '<input>' is empty \[E0500\] Pass 1: parse failed\.$
# stdout: ^no probes 1 semantic error: no probes found \[E0165\] Pass 2: analysis failed\.$
# stdout: ^types begin timer\.profile, for users begin$
# stdout: ^without a warning DEBUG_MEM MAPHASHBIAS$
# stdout: ^wrong 1 For more information, try '--help'\.
# stdout: ^staprun Systemtap module loader/runner \(version 5\.6/
# stdout: ^staprun 1$
# stdout: ^stapio 1$

cp -r "$CACHE" cache
export SPILE_CACHE_DIR=$PWD/cache PATH=$PWD/bin:$PATH XDG_DATA_DIRS=$PWD/share
mkdir -p bin share/systemtap/examples/io
for name in stap staprun stapio; do ln -s "$SPILE" bin/$name; done
version() { sed -n '1s/^Systemtap translator\/driver (version \([0-9.]*\)\/.*/version \1/p'; }
stap -V 2>/dev/null | version
echo "$("$SPILE" --version | version) of spile"
echo "-l $(stap -r "$RELEASE" -l 'kernel.function("vfs_read")' >out; echo $? "$(cat out)")"
echo "-L $(stap -r "$RELEASE" -L 'kernel.function("vfs_read")' >out; echo $? "$(cat out)")"
stap -r "$RELEASE" -l 'kernel.function("no_such_function_here")' >out 2>/dev/null || echo "none $?"
stap -p1 -e 'probe begin { exit() }' >/dev/null && echo "-p1 $?"
first() { stap -p2 -e "$1" 2>&1 >/dev/null | grep -m 1 ':.*\[[EW]0'; }
echo "$(first 'probe begin { foo( }'); $(first 'probe begin { x = 1 . "a" println(x) }'); $(first 'probe begin { println(2) x = 1 }')"
said() { stap -r "$RELEASE" -p2 -e "$1" 2>&1 >/dev/null | sed -n 's/^semantic error/said &/p'; }
said 'probe kernel.function("vfs_read") { println($foo) }'
said 'probe kernel.function("vfs_read") { println($file->foo) }'
said 'probe kernel.function("vfs_raed") { println(1) }'
said 'probe begin { printx(1) }'
said 'probe kernel.functoin("vfs_read") { println(1) }'
said 'probe begin.now { println(1) }'
said 'probe kernel.function("vfs_read") { $count = 1 }'
said 'global a probe begin { a[1] = 1 foreach (i in a) a[2] = 1 }'
said 'probe begin { break }'
stap -v -r "$RELEASE" -p4 -k -m drive -g -DMAXSKIPPED=1000 -s 64 --suppress-handler-errors -e 'probe begin { exit() }' >out 2>err && status=0 || status=$?
echo "passes $(grep -o '^Pass [1-4]' err | xargs)"
# Each line of -v is one that SystemTap prints, in its form, and none is left out where the module comes from the cache.
echo 'global a probe kernel.function("vfs_read") { a[tid()]++ }' >counts.stp
for run in first again; do stap -v -r "$RELEASE" -p4 counts.stp >/dev/null 2>$run; done
known='^Pass [1-4]: .* in [0-9]*usr/[0-9]*sys/[0-9]*real ms\.$\|^Pass [34]: using cached [^ ]*$'
of() { echo "$1 $(grep -c "$known" $1) of $(wc -l <$1)"; }
echo "lines $(of first) $(of again)"
echo "counted again $(sed -n 's/using [0-9].*kb/using NUMBER/; s/in [0-9].*/in TIME/; /^Pass 2/p' again)"
echo "-vv $(stap -vv -r "$RELEASE" -p4 -DMAXERRORS=3 counts.stp 2>&1 >/dev/null | grep -c '^Arrays take')"
grep -q 'Keeping temporary directory "/.*"' err || cat err
echo "built $status $(cat out) $(ls drive.ko)"
rm -rf "$(sed -n 's/^Keeping temporary directory "\(.*\)"/\1/p' err)"
echo "unnamed $(stap --vp 00001 -r "$RELEASE" -p4 -e 'probe begin { exit() }')"
echo 'probe begin { println(@1) exit() }' | stap -p2 - word >/dev/null && echo "stdin $?"
stap -i --ldd --sysroot=/ --sysenv=PATH=/bin --check-version --semantic-keep-going --prologue-searching=always -P --save-uprobes --target-namespaces=1 \
	-p2 -e 'probe begin { exit() }' >/dev/null 2>err && echo "noted $? $(grep -c '^NOTE: -' err)"
stap -B -s -B KBUILD_VERBOSE=0 -r "$RELEASE" -p4 -m made -e 'probe begin { exit() }' >/dev/null && echo "make $?"
echo 'probe kernel.function("vfs_read") { exit() }' >share/systemtap/examples/io/reads.stp
echo "example $(stap --example -r "$RELEASE" -p2 reads >out; echo "$? $(cat out)")"
stap --example -p1 writes 2>/dev/null || echo "no example $?"
message() { echo "$? $(grep -v '^NOTE\|^ ' err | sed 's/^ERROR: //' | paste -sd ' ')"; }
stap -p1 -e '# nothing' 2>err || echo "empty $(message)"
stap -p2 -e 'global x function f() { return x }' 2>err || echo "no probes $(message)"
types() { stap "$@" --dump-probe-types | grep -x 'begin\|timer.profile' | xargs; }
echo "types $(types), for users $(types --unprivileged)"
stap -p4 -r "$RELEASE" -m named -DDEBUG_MEM -DMAPHASHBIAS=2 -DSTAP_SUPPRESS_HANDLER_ERRORS -e 'probe begin { exit() }' >/dev/null 2>err
grep -q 'no such limit' err || echo 'without a warning DEBUG_MEM MAPHASHBIAS'
stap --no-such-option -e 'probe begin {}' 2>err || echo "wrong $? $(grep "'--help'" err)"
echo "staprun $(staprun -V 2>&1)"
staprun -T 200 no_such_module.ko 2>/dev/null || echo "staprun $?"
stapio -R /no/such/module.ko 2>/dev/null || echo "stapio $?"
