# Shows: --debug-info writes the debug information of a module where gdb finds it by the module's build-id; the module is the one
# that is built without it, new or from the cache.
# stdout: ^with it: the same module$
# stdout: ^from the cache: the same module$
# stdout: ^the same information$
# stdout: ^module alone: .*No line number information
# stdout: ^with it: Line [0-9]+ of ".*session\.c" starts at address 0x[0-9a-f]+ <spile_session_start
# stdout: ^handler: Line [0-9]+ of ".*script\.c" starts at address
# stdout: ^type: .*struct spile_context \{
# stdout: ^moved, at its address: Line [0-9]+ of ".*session\.c" starts at address 0xffffffffc0[0-9a-f]+ <spile_session_start
# stdout: ^in place of the module: Line [0-9]+ of ".*session\.c" starts at address 0xffffffffc0[0-9a-f]+ <spile_session_start
# limit: 121
# stderr: ^Debug information: new/\.build-id/[0-9a-f]{2}/[0-9a-f]{38}\.debug$
# stderr: ^spile: --debug-info is for a module, and -p3 makes none$

cp -r "$CACHE" cache
export SPILE_CACHE_DIR=$PWD/cache PATH=$COMPILE_ONCE:$PATH
script='global a probe kernel.function("vfs_read") { a[pid()]++ } probe begin { println("hello") exit() }'
build() { rm -f fix.ko; "$SPILE" -r "$RELEASE" -p4 -m fix "$@" -e "$script" >made; }
build
mv fix.ko plain.ko
build --poison-cache --debug-info new
cmp fix.ko plain.ko && echo "with it: the same module"
build --debug-info cached
cmp fix.ko plain.ko && echo "from the cache: the same module"
id=$(readelf -n fix.ko | sed -n 's/.*Build ID: //p')
file=.build-id/$(echo "$id" | cut -c 1-2)/$(echo "$id" | cut -c 3-).debug
cmp "new/$file" "cached/$file" && echo "the same information"
look() { gdb -nx -batch -ex "set debug-file-directory $PWD/$1" -ex 'file fix.ko' -ex "$2" 2>&1 | grep -v '^Reading\|^$\|^(No debugging\|^warning' | head -n 1; }
echo "module alone: $(look none 'info line spile_session_start')"
echo "with it: $(look new 'info line spile_session_start')"
echo "handler: $(look new "info line $(nm fix.ko | sed -n 's/.* t \(spile_probe_[a-z0-9_]*\|handler_[a-z0-9_]*\|probe_[a-z0-9_]*\)$/\1/p' | head -n 1)")"
echo "type: $(look new 'ptype struct spile_context')"
mkdir moved
mv new/.build-id moved/
added() { gdb -nx -batch -ex "set debug-file-directory $PWD/$1" -ex "add-symbol-file $2 0xffffffffc0000000" -ex 'info line spile_session_start' 2>&1 | grep '^Line\|^No'; }
echo "moved, at its address: $(added moved fix.ko | head -n 1)"
echo "in place of the module: $(added none "moved/$file" | head -n 1)"
"$SPILE" -r "$RELEASE" -p3 --debug-info none -e "$script" >made || true
