# Shows: -d FILE works for listings, wildcards, lines, --resolve, --check and --export-index; of several files the one for the
# kernel is used; hints for a module without debug information depend on how it was built.
# limit: 300
# stdout: ^listed 1$
# stdout: ^glob 1$
# stdout: ^ *1000 \* \(2 addresses\)
# stdout: ^resolved 1$
# stdout: 1 same: the script works there as on the first$
# stdout: ^exported 1$
# stdout: ^no such module 1 at once$
# stdout: ^no such file 1$
# stdout: ^directory 1$
# stdout: ^hints: built 1, kernel's package 0, separate file 1, looked at 1, dkms 0$
# stdout: ^hints: dkms 1, built 0, separate file 1$
# stdout: ^separate file found 1$

for file in $MODULES; do case $file in */ptlrpc.ko) module=$file ;; esac; done
point='module("ptlrpc").function("ldlm_resource_dump")'
"$SPILE" -r "$RELEASE" -d "$module" -l "$point" >out
echo "listed $(grep -c ldlm_resource_dump out)"
"$SPILE" -r "$RELEASE" -d "$module" -l 'module("ptlr*").function("ldlm_resource_dump")' >out
echo "glob $(grep -c ldlm_resource_dump out)"
"$SPILE" -r "$RELEASE" -d "$module" --list-lines 'module("ptlrpc").function("ptlrpc_ways")' 2>/dev/null | grep '^ *1000 '
echo "probe $point { println(\$res) }" >script.stp
"$SPILE" -r "$RELEASE" -d "$module" --resolve script.stp >out
echo "resolved $(grep -c 'res: struct ldlm_resource' out)"
"$SPILE" --check script.stp -d "$module" --kernel "$RELEASE" --kernel "$RELEASE" | tail -n 1 | sed 's/.*: 2 same/1 same/'
# Exported with -d.
echo "exported $("$SPILE" --index "$KERNEL_INDEX" -l "$point" | grep -c ldlm_resource_dump)"
status=0
timeout 5 "$SPILE" -r "$RELEASE" --export-index other.index no_such_module 2>err || status=$?
echo "no such module $status at once"
status=0
"$SPILE" -r "$RELEASE" -d ./none.ko -l "$point" 2>err || status=$?
grep -q "none.ko': there is no such file" err && echo "no such file $status"

status=0
"$SPILE" -r "$RELEASE" -d . -l "$point" 2>err || status=$?
grep -q -e '-d \. is left out: a directory' err && echo "directory $status"

mkdir -p own/extra own/updates/dkms
own=own/extra/ptlrpc.ko
objcopy --strip-debug --remove-section .BTF --remove-section .gnu_debuglink "$module" $own
cp $own own/updates/dkms/
"$SPILE" -r "$RELEASE" -d $own -l "$point" 2>err || true
count() { tr '\n' ' ' <err | grep -c "$1" || true; }
echo "hints: built $(count KCFLAGS=-g), kernel's package $(count 'apt-get install'), separate file $(count '\.build-id/'), looked at $(count "looked at .*$own.debug"), dkms $(count STRIP=no)"
"$SPILE" -r "$RELEASE" -d own/updates/dkms/ptlrpc.ko -l "$point" 2>err || true
echo "hints: dkms $(count STRIP=no), built $(count 'not built with the kernel'), separate file $(count '\.build-id/')"
objcopy --only-keep-debug "$module" $own.debug
"$SPILE" -r "$RELEASE" -d $own -l "$point" >out
echo "separate file found $(grep -c ldlm_resource_dump out)"
