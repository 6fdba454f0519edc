# Shows: -l lists canonical points, and aliases by their names; -L with variables and their types; nothing found is status 1.
# stdout: ^kernel\.function\("vfs_read@fs/read_write\.c:[0-9]+"\)$
# stdout: ^kernel\.function\("vfs_read@fs/read_write\.c:[0-9]+"\)\.return \$return:ssize_t \$file:struct file\*
# stdout: ^kernel\.function\("vfs_readv@
# stdout: ^kernel\.function\("vfs_write@
# stdout: ^nothing: 1$
# stdout: ^syscall\.open$
# stdout: ^syscall\.openat$
# stdout: ^scheduler\.wakeup name:string task:long task_pid:long .*task_cpu:long.* \$p:struct task_struct\*$
# stdout: ^syscall\.openat\.return name:string retval:long retstr:string
# stdout: ^vm\.brk$

"$SPILE" -r "$RELEASE" -l 'kernel.function("vfs_read")'
"$SPILE" -r "$RELEASE" -L 'kernel.function("vfs_read").return'
"$SPILE" -r "$RELEASE" -l 'kernel.function("vfs_re*")' | grep vfs_readv
"$SPILE" -r "$RELEASE" -L 'written = kernel.function("vfs_write")'
status=0
"$SPILE" -r "$RELEASE" -l 'kernel.function("no_such_*_function")' 2>/dev/null || status=$?
echo "nothing: $status"
"$SPILE" -r "$RELEASE" -l 'syscall.open*'
"$SPILE" -r "$RELEASE" -L 'syscall.openat.return' -L scheduler.wakeup
"$SPILE" -r "$RELEASE" -l 'vm.br*'
