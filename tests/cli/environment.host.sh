# Shows: directories set by environment variables: another library, SystemTap's runtime, temporary files where make cannot work or
# that do not exist.
# stdout: ^library: kernel.function\("vfs_read.*from_here
# stdout: ^runtime: WARNING: SYSTEMTAP_RUNTIME=.*: not used, it contains no runtime of spile$
# stdout: ^blank: WARNING: TMPDIR=.*/a b: the kernel's make does not take this path, /tmp is used$
# stdout: ^blank: built.ko$
# stdout: ^gone: 1 .*TMPDIR=.*/gone: No such file or directory
# stdout: ^nothing was made$

export SPILE_CACHE_DIR=$PWD/cache PATH=$COMPILE_ONCE:$PATH
mkdir library "a b"
echo 'probe from_here = kernel.function("vfs_read") { }' >library/from_here.stp
echo "library: $(SYSTEMTAP_TAPSET=$PWD/library "$SPILE" -r "$RELEASE" -p2 -e 'probe from_here { exit() }' | grep vfs_read)"
echo "runtime: $(SYSTEMTAP_RUNTIME=$PWD "$SPILE" -p1 -e 'probe begin { exit() }' 2>&1 >/dev/null)"
TMPDIR="$PWD/a b" "$SPILE" -r "$RELEASE" -p4 -m built -e 'probe begin { exit() }' 2>&1 | sed 's/^/blank: /'
status=0
message=$(TMPDIR=$PWD/gone "$SPILE" -p1 -e 'probe begin { exit() }' 2>&1) || status=$?
echo "gone: $status $message"
[ -e gone ] || echo "nothing was made"
