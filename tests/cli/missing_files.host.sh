# Shows: missing things are reported, with the package or similar names, and nothing is left behind.
# stderr: kernel 9\.9\.9-none is not installed here
# stderr: linux-image-9\.9\.9-none
# stderr: error\[E0204\]: no function `vfs_raed` in the kernel
# stderr: did you mean vfs_read
# stderr: error\[E0121\]: no variable `\$fil`
# stderr: available there: \$file, \$buf
# stderr: error\[E0125\]: struct file has no member `f_mde`
# stderr: WARNING: missing unwind/symbol data for module 'gone\.ko': there is no such file
# stderr: WARNING: missing unwind/symbol data for module '/no/such\.ko\.zst': there is no such file
# stderr: WARNING: missing unwind/symbol data for module 'no_such_module': there is no such file, and no such module
# stderr: WARNING: -d / is left out: a directory
# stdout: ^1 1 1 1 0 0 0$
# stdout: ^quiet 0$
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
try -r "$RELEASE" -d gone.ko -d /no/such.ko.zst -p2 -e 'probe begin { exit() }'
try -r "$RELEASE" -d no_such_module -d / -p2 -e 'probe begin { exit() }'
# The name of a module of the kernel, as stap takes it: its symbols are known anyway.
try -r "$RELEASE" -d ext4 -d kernel -p2 -e 'probe begin { exit() }'
echo $statuses
echo "quiet $("$SPILE" -r "$RELEASE" -d ext4 -d kernel -p2 -e 'probe begin { exit() }' 2>&1 | grep -c WARNING)"
echo "$(ls | wc -l) files"
