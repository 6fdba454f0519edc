# Shows: codes whose pages have no script, because they depend on the kernel, on options or on files, are given.
# stdout: ^missing: none of 14$
# limit: 120

missing=
count=0
# gives CODE OPTIONS...
gives() {
	count=$((count + 1))
	code=$1
	shift
	"$SPILE" -r "$RELEASE" -p2 "$@" >out 2>&1 || true
	grep -q "$code" out || { missing="$missing $code" && cat out; }
}
gives '\[E0124\]' -e 'probe kernel.function("fput").return { println($return) }'
gives '\[E0126\]' -e 'probe kernel.function("vfs_read") { println($count->x) }'
gives '\[E0127\]' -e 'probe kernel.function("vfs_read") { println($count[1]) }'
gives '\[E0129\]' -e 'probe kernel.function("vfs_read") { println(&$count) }'
gives '\[E0130\]' -g -e 'probe kernel.function("vfs_read").return { $count = 1 }'
gives '\[E0131\]' -e 'probe kernel.function("vfs_read").return { x = 1 println(@entry(x)) }'
gives '\[E0205\]' -e 'probe kernel.function("zzz_no_such_*") { exit() }'
gives '\[E0206\]' -e 'probe kernel.function("file_inode").return { exit() }'
gives '\[E0402\]' --unprivileged -e 'probe kernel.function("vfs_read") { exit() }'
gives '\[W0109\]' -G nope=1 -e 'probe begin { exit() }'
gives '\[E0106\]' -g -e 'probe kernel.function("vfs_read") { $file->f_path->dentry->d_iname = 1 }'
gives '\[E0190\]' -e 'probe kernel.function("vfs_read@fs/read_write.c:x") { exit() }'
# A kernel without kprobes: a program of two functions in the place of one.
mkdir -p kernel/usr/lib/debug/boot
echo 'int f(int n) { return n + 1; } int _start(void) { return f(3); }' >kernel.c
gcc -g -O1 -fno-inline -static -nostdlib -o kernel/usr/lib/debug/boot/vmlinux-1.2.3 kernel.c
RELEASE=1.2.3 gives '\[E0301\]' --sysroot kernel -e 'probe kernel.function("f") { exit() }'
gives '"E0502"' --diagnostics json
echo "missing: ${missing:-none of $count}"
