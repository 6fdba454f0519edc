# Shows: missing things are reported, with the package or similar names, and nothing is left behind.
# stderr: kernel 9\.9\.9-none is not installed here
# stderr: linux-image-9\.9\.9-none
# stderr: error\[E0204\]: no function `vfs_raed` in the kernel
# stderr: did you mean vfs_read
# stderr: error\[E0121\]: no variable `\$fil`
# stderr: available there: \$file, \$buf
# stderr: error\[E0125\]: struct file has no member `f_mde`
# stdout: ^1 1 1 1$
# stdout: ^0 files$

statuses=
try() {
	status=0
	"$SPILE" "$@" >/dev/null || status=$?
	statuses="$statuses $status"
}
try -r 9.9.9-none -p4 -e 'probe begin { exit() }'
try -r "$RELEASE" -p4 -e 'probe kernel.function("vfs_raed") { }'
try -r "$RELEASE" -p4 -e 'probe kernel.function("vfs_read") { print($fil) }'
try -r "$RELEASE" -p4 -e 'probe kernel.function("vfs_read") { print($file->f_mde) }'
echo $statuses
echo "$(ls | wc -l) files"
