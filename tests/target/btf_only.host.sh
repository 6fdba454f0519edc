# Shows: a kernel without its debug package: messages explain it, --check prints "not known" for facts that BTF lacks, and
# Debian's headers with a vmlinux that has only BTF (6.12) do not prevent probes of the kernel. BTF does not describe all functions:
# kprobe.function() takes any name, and patterns match what is described.
# limit: 120
# stdout: ^compiles 1$
# stdout: ^by symbol: not described 1, pattern vfs_readlink vfs_readv$
# stdout: ^reports what is missing: function 1, variable 1$
# stdout: ^not known: inlined 1, line 1$
# stdout: ^same: function 1, argument 1$
# stdout: ^gone 1$

debug=/usr/lib/debug/boot/vmlinux-$RELEASE
mkdir -p "root/lib/modules/$RELEASE/build" root/boot
ln -s "/boot/vmlinuz-$RELEASE" root/boot/
ln -s "/lib/modules/$RELEASE/kernel" "/lib/modules/$RELEASE/modules.dep" "root/lib/modules/$RELEASE/"
objcopy --only-section=.BTF "$debug" "root/lib/modules/$RELEASE/build/vmlinux" 2>/dev/null

"$SPILE" -r "$RELEASE" --sysroot root -p3 -e 'probe kernel.function("vfs_read") { println($count) }' >compiled.c 2>compiled.err || cat compiled.err
echo "compiles $(grep -c 'vfs_read' compiled.c | sed 's/[1-9][0-9]*/1/')"
pattern=$("$SPILE" -r "$RELEASE" --sysroot root -l 'kprobe.function("vfs_read[lv]*")' 2>&1 | sed 's/.*("\(.*\)")/\1/' | tr '\n' ' ')
echo "by symbol: not described $("$SPILE" -r "$RELEASE" --sysroot root -p3 -e 'probe kprobe.function("not_described") { println(1) }' 2>&1 | grep -c '"not_described"' | sed 's/[1-9][0-9]*/1/'), pattern ${pattern% }"
missing() { "$SPILE" -r "$RELEASE" --sysroot root -p2 -e "$1" 2>&1 | grep -c 'there is no debug information of the kernel'; }
echo "reports what is missing: function $(missing 'probe kernel.function("signal_wake_up") { println(1) }'), variable $(missing 'probe kernel.function("vfs_read") { println($ret) }')"

cat >script.stp <<'END'
probe kernel.function("signal_wake_up").inline { println(1) }
probe kernel.statement("vfs_read@fs/read_write.c:*") { println(2) }
probe kernel.function("vfs_read") { println($count) }
probe kernel.function("vfs_write") { println($nothing) }
END
"$SPILE" --check --kernel "$RELEASE" --kernel ./root script.stp >check.out 2>check.err || true
# verdict TEXT: from the line that begins with it.
verdict() { grep -A 1 -F "$1" check.out | tail -n 1 | grep -o 'root  *\(not known\|same\|gone\)' | sed 's/root *//'; }
is() { if [ "$(verdict "$1")" = "$2" ]; then echo 1; else verdict "$1"; fi; }
echo "not known: inlined $(is 'script.stp:1:7' 'not known'), line $(is 'script.stp:2:7' 'not known')"
echo "same: function $(is 'script.stp:3:7' same), argument $(is 'script.stp:3:45' same)"
echo "gone $(grep -A 1 -F 'nothing' check.out | grep -c 'on neither kernel')"
