# Shows: --resolve prints symbol, section, build-id and the location of each variable; --list-lines prints the lines that can be
# probed.
# stdout: ^kernel\.function\("vfs_read@fs/read_write\.c:[0-9]+"\)$
# stdout: ^    vfs_read\+0x0 in \.text of kernel \(0xffffffff8[0-9a-f]+\), build-id [0-9a-f]{40}$
# stdout: ^    \$count: size_t in %rdx$
# stdout: ^    \$file->f_flags: unsigned int in \[%rdi\+0x[0-9a-f]+\]$
# stdout: ^    \$prev->pid: pid_t in \[argument 2\+0x[0-9a-f]+\]$
# stdout: "symbol":"vfs_read"
# stdout: ^ +1 process\.begin$
# stdout: ^    \$nothing: no variable
# stdout: ^status 1$
# stdout: ^vfs_read@fs/read_write\.c:[0-9]+$
# stdout: ^ +[0-9]+ \* \$file:struct file\* \$buf:char\* \$count:size_t \$pos:loff_t\* \$ret:ssize_t$
# stdout: ^ +[0-9]+$
# stdout: ^NOTE: no source text of fs/read_write\.c .*: --source DIR names a directory that has it$
# stdout: ^ +[0-9]+ \* the text of line [0-9]+$
# stdout: ^ +[0-9]+ \* the text of line [0-9]+$
# stdout: ^source 0 notes$
# stdout: ^no source 1$
# stdout: ^index resolves alike$
# stdout: ^WARNING: -m nfs: kernel .* has a module or a part of this name
# limit: 120

"$SPILE" -r "$RELEASE" --resolve -e 'probe kernel.function("vfs_read") { println($count, $file->f_flags) }'
"$SPILE" -r "$RELEASE" --resolve -e 'probe kernel.trace("sched_switch") { println($prev->pid) }'
"$SPILE" -r "$RELEASE" --resolve=json -e 'probe kernel.function("vfs_read").return { println($return) }'
# Attached in six ways.
"$SPILE" -r "$RELEASE" --resolve -e 'probe process.begin { println(1) }' | uniq -c
status=0
"$SPILE" -r "$RELEASE" --resolve -e 'probe kernel.function("vfs_read") { println($nothing) }' || status=$?
echo "status $status"
"$SPILE" -r "$RELEASE" --list-lines 'kernel.function("vfs_read")' 2>err
cat err

# With the source text, from a file of that name in the place of a source package.
mkdir -p root/usr/lib root/boot "root/usr/src/linux-source-${RELEASE%%-*}/fs"
ln -s /usr/lib/debug root/usr/lib/debug
ln -s /lib root/lib
for line in $(seq 1 2000); do echo "	the text of line $line"; done >"root/usr/src/linux-source-${RELEASE%%-*}/fs/read_write.c"
"$SPILE" -r "$RELEASE" --sysroot root --list-lines 'kernel.function("vfs_read")' | sed 's/\* *the/* the/'
# The same from an unusual directory.
mkdir -p mine
mv "root/usr/src/linux-source-${RELEASE%%-*}/fs/read_write.c" mine/
"$SPILE" -r "$RELEASE" --source mine --list-lines 'kernel.function("vfs_read")' 2>err | sed 's/\* *the/* the/'
echo "source $(grep -c NOTE err) notes"
"$SPILE" -r "$RELEASE" --source none --list-lines 'kernel.function("vfs_read")' 2>/dev/null || echo "no source $?"

# An index contains the locations, too.
for how in "-r $RELEASE" "--index $KERNEL_INDEX"; do
	"$SPILE" $how --resolve=json -e 'probe kernel.function("vfs_*") { println($$parms) } probe kernel.trace("sched_switch") { println($prev->pid) }' || true
done >both
[ "$(uniq both | wc -l)" = 1 ] && [ "$(wc -l <both)" = 2 ] && grep -q '"symbol":"vfs_read"' both && echo "index resolves alike"

"$SPILE" -r "$RELEASE" -p4 -m nfs -e 'probe begin { exit() }' 2>&1 >/dev/null
