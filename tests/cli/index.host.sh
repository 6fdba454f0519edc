# Shows: an exported index answers -l, -L and --check as the debug information does; a damaged one is refused.
# limit: 600
# stdout: ^size ok$
# stdout: ^functions alike: [1-9][0-9]*$
# stdout: ^variables alike: [1-9][0-9]*$
# stdout: ^tracepoints alike: [1-9][0-9]*$
# stdout: ^lines alike: [1-9][0-9]*$
# stdout: ^module alike: [1-9][0-9]*$
# stdout: ^returns alike: [1-9][0-9]*$
# stdout: ^labels alike: [1-9][0-9]*$
# stdout: ^calls alike: [1-9][0-9]*$
# stdout: ^deep alike: [1-9][0-9]*$
# stdout: \$file->f_path->dentry->d_name->name  \(const unsigned char\*; kernel\.function\("vfs_read"\)\)$
# stdout: all is well$
# stdout: ^check 0$
# stdout: kernel\.index: 1 same: all is well$
# stdout: ^compiled 1$
# stdout: ^damaged 1$

"$SPILE" -r "$RELEASE" --export-index kernel.index nfs
[ "$(stat -c %s kernel.index)" -gt 1000000 ] && [ "$(stat -c %s kernel.index)" -lt 9500000 ] && echo "size ok"

alike() { # alike NAME ARGUMENTS: the listing by the debug information and by the index
  name=$1
  shift
  "$SPILE" -r "$RELEASE" "$@" >full
  "$SPILE" --index kernel.index "$@" >indexed
  cmp full indexed && echo "$name alike: $(wc -l <full)"
}
alike functions -l 'kernel.function("*")'
alike variables -L 'kernel.function("vfs_*")'
alike tracepoints -L 'kernel.trace("sched:*")'
alike lines -l 'kernel.statement("vfs_read@fs/read_write.c:*")'
alike module -L 'module("nfs").function("nfs_*")'
alike returns -L 'module("nfs").function("nfs_*").return'
alike labels -L 'kernel.function("tcp_*").label("*")'
alike calls -l 'module("nfs").function("nfs_*").callees'
alike deep -l 'kernel.function("vfs_read").callees(3)'

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
"$SPILE" --index kernel.index -p4 script.stp 2>/dev/null || status=$?
echo "compiled $status"
printf x | dd of=kernel.index bs=1 seek=500000 conv=notrunc status=none
status=0
"$SPILE" --index kernel.index -l 'kernel.function("vfs_read")' 2>damaged.err || status=$?
grep -q damaged damaged.err && echo "damaged $status"
