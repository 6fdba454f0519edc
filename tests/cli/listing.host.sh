# Shows: -l lists canonical points, -L with variables and their types; nothing found is status 1.
# stdout: ^kernel\.function\("vfs_read@fs/read_write\.c:[0-9]+"\)$
# stdout: ^kernel\.function\("vfs_read@fs/read_write\.c:[0-9]+"\)\.return \$return:ssize_t \$file:struct file\*
# stdout: ^kernel\.function\("vfs_readv@
# stdout: ^nothing: 1$

"$SPILE" -r "$RELEASE" -l 'kernel.function("vfs_read")'
"$SPILE" -r "$RELEASE" -L 'kernel.function("vfs_read").return'
"$SPILE" -r "$RELEASE" -l 'kernel.function("vfs_re*")' | grep vfs_readv
status=0
"$SPILE" -r "$RELEASE" -l 'kernel.function("no_such_*_function")' 2>/dev/null || status=$?
echo "nothing: $status"
