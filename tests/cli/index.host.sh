# Shows: an exported index answers -l, -L and --check as the debug information does, and the same C and a module are compiled from
# it; a probe on a line is refused then; a damaged index is refused.
# limit: 900
# stdout: ^size ok$
# stdout: ^functions same: [1-9][0-9]*$
# stdout: ^variables same: [1-9][0-9]*$
# stdout: ^tracepoints same: [1-9][0-9]*$
# stdout: ^lines same: [1-9][0-9]*$
# stdout: ^module same: [1-9][0-9]*$
# stdout: ^returns same: [1-9][0-9]*$
# stdout: ^labels same: [1-9][0-9]*$
# stdout: ^callees same: [1-9][0-9]*$
# stdout: ^nested callees same: [1-9][0-9]*$
# stdout: ^C same: [1-9][0-9]*, permanent breakpoints: [1-9][0-9]*$
# stdout: \$file->f_path->dentry->d_name->name  \(const unsigned char\*; kernel\.function\("vfs_read"\)\)$
# stdout: the script works there as on the first$
# stdout: ^check 0$
# stdout: kernel\.index: 1 same: the script works there as on the first$
# stdout: ^compiled 0: from_index\.ko$
# stdout: ^line 1, refused with the reason$
# stdout: ^program functions same: [1-9][0-9]*$
# stdout: ^program returns same: [1-9][0-9]*$
# stdout: ^program inline same: [1-9][0-9]*$
# stdout: ^program C same: [1-9][0-9]*$
# stdout: ^program line 1, refused with the reason$
# stdout: ^checked: .*the script works there as on the first$
# stdout: ^other build process\(".*/prog"\)\.function\("twice"\)$
# stdout: ^no build-id: error.* has no build-id, by which an index knows programs
# stdout: ^narrow: error.* is a 32-bit program, which an index cannot describe
# stdout: ^damaged 1$

cp "$KERNEL_INDEX" kernel.index
[ "$(stat -c %s kernel.index)" -gt 1000000 ] && [ "$(stat -c %s kernel.index)" -lt 16000000 ] && echo "size ok"

same() { # same NAME ARGUMENTS: the output by the debug information and by the index
  name=$1
  shift
  "$SPILE" -r "$RELEASE" "$@" >full
  "$SPILE" --index kernel.index "$@" >indexed
  cmp full indexed && echo "$name same: $(wc -l <full)"
}
same functions -l 'kernel.function("*")'
same variables -L 'kernel.function("vfs_*")'
same tracepoints -L 'kernel.trace("sched:*")'
same lines -l 'kernel.statement("vfs_read@fs/read_write.c:*")'
same module -L 'module("nfs").function("nfs_*")'
same returns -L 'module("nfs").function("nfs_*").return'
same labels -L 'kernel.function("tcp_*").label("*")'
same callees -l 'module("nfs").function("nfs_*").callees'
same 'nested callees' -l 'kernel.function("vfs_read").callees(3)'

cat >compiled.stp <<'EOF'
probe kernel.function("vfs_read") { println($count, kernel_string($file->f_path->dentry->d_name->name)) }
probe kernel.function("vfs_write").return { println($return, @entry($count)) }
probe kernel.function("task_pid_vnr").inline ?, kernel.function("fdget_pos").inline ? { println($$vars) }
probe kernel.function("tcp_*").label("out") ? { println($$parms) }
probe kernel.function("vfs_read").callee("rw_verify_area") ? { println($$parms) }
probe kernel.function("vfs_write").callees(2) { println($$parms) }
probe kernel.function("_static_cpu_has").label("*") ?, kernel.function("arch_static_branch").label("*") ? { println(pp()) }
probe kernel.trace("sched_switch") { println($prev->pid, @var("jiffies_64"), @var("nr_threads")) }
probe module("nfs").function("nfs_file_read") { println($iocb, $$vars, @var("nfs_net_id", "nfs")) }
EOF
# Except for the metadata, which contain file names.
for kernel in -r"$RELEASE" --index=kernel.index; do
  "$SPILE" "$kernel" -p3 -m same compiled.stp | grep -v '^static const unsigned char meta\|^	"' >"code$kernel"
done
cmp "./code-r$RELEASE" ./code--index=kernel.index && echo "C same: $(wc -l <"./code-r$RELEASE"), permanent breakpoints: $(grep -c 'stays_breakpoint = 1' "./code-r$RELEASE")"

cat >script.stp <<'EOF'
probe kernel.function("vfs_read") { println(kernel_string($file->f_path->dentry->d_name->name)) }
probe kernel.trace("sched_switch") { println($prev->pid) }
probe module("nfs").function("nfs_file_read") { println($iocb) }
probe syscall.openat { println(argstr) }
EOF
status=0
"$SPILE" --check script.stp --kernel "$RELEASE" --kernel kernel.index || status=$?
echo "check $status"
"$SPILE" --check -e 'probe kernel.function("vfs_read").callee("*") {}' --kernel "$RELEASE" --kernel kernel.index || true
status=0
"$SPILE" --index kernel.index -p4 -m from_index script.stp >made 2>refused || status=$?
cat refused >&2
echo "compiled $status: $(basename "$(cat made)")"
status=0
"$SPILE" --index kernel.index -p4 -e 'probe kernel.statement("vfs_read@fs/read_write.c:*") { println($count) }' 2>refused || status=$?
grep -q 'does not have where this line' refused && echo "line $status, refused with the reason"

# A program of which the index has the debug information, and the host only what is executed.
mkdir whole bare
cp "$ROOT/target/fixtures/programs/user" whole/prog
strip --strip-all -o bare/prog whole/prog
same_program() { # same_program NAME ARGUMENTS
  name=$1
  shift
  (cd whole && "$SPILE" -r "$RELEASE" "$@") | sed 's:/whole/:/:g; /^static const unsigned char meta/d; /^	"/d' >whole.out
  (cd bare && "$SPILE" --index ../kernel.index "$@") | sed 's:/bare/:/:g; /^static const unsigned char meta/d; /^	"/d' >bare.out
  cmp whole.out bare.out && echo "program $name same: $(wc -l <whole.out)"
}
same_program functions -L 'process("./prog").function("*@user.c").call'
same_program returns -L 'process("./prog").function("*@user.c").return'
same_program inline -L 'process("./prog").function("*@user.c").inline'
same_program C -p3 -m same -e 'probe process("./prog").function("main@user.c") { println($$parms) } probe process("./prog").function("*@user.c").return { println($$return) }'
status=0
(cd bare && "$SPILE" --index ../kernel.index -p3 -e 'probe process("./prog").statement("main@user.c:*") {}') >/dev/null 2>refused || status=$?
grep -q 'does not have the addresses of lines' refused && echo "program line $status, refused with the reason"
echo "checked: $(cd bare && "$SPILE" --check -e 'probe process("./prog").function("main@user.c") { println($argc) }' --kernel ../kernel.index --kernel ../kernel.index 2>&1 | tail -n 1)"
echo 'int twice(int number) { return number * 2; } int main(int count, char **words) { return twice(count); }' >other.c
gcc -g -O2 -Wl,--build-id=sha1 -o bare/prog other.c
strip --strip-debug bare/prog
echo "other build $("$SPILE" --index kernel.index -L "process(\"$PWD/bare/prog\").function(\"twice\")" 2>&1)"
gcc -g -Wl,--build-id=none -o without other.c
echo "no build-id: $("$SPILE" -r "$RELEASE" --export-index other.index ./without 2>&1 | head -n 1)"
echo "narrow: $("$SPILE" -r "$RELEASE" --export-index other.index "$ROOT/target/fixtures/programs/user32" 2>&1 | head -n 1)"

printf x | dd of=kernel.index bs=1 seek=500000 conv=notrunc status=none
status=0
"$SPILE" --index kernel.index -l 'kernel.function("vfs_read")' 2>damaged.err || status=$?
grep -q damaged damaged.err && echo "damaged $status"
