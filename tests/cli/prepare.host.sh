# Shows: --prepare compiles the runtime and makes the tables of debug information ahead, once; the first script then finds both,
# and the hook for new kernels calls it and does no harm where a kernel has no headers.
# stdout: ^[^ ]+: runtime: ready after [0-9.]+ s$
# stdout: ^[^ ]+: debug information: ready after [0-9.]+ s$
# stdout: ^[^ ]+: runtime: was ready$
# stdout: ^[^ ]+: debug information: was ready$
# stdout: ^runtime: cached$
# stdout: ^nothing made again$
# stdout: ^hook: 0, for no kernel: 0$
# stdout: ^unknown kernel: 1$
# stdout: ^one of two is unknown: 1, 2 lines$
# limit: 90

export PATH=$COMPILE_ONCE:$PATH
export SPILE_CACHE_DIR=$PWD/cache
"$SPILE" --prepare "$RELEASE"
(cd cache && find . -type f | sort) >before
"$SPILE" --prepare -r "$RELEASE"
"$SPILE" -r "$RELEASE" -p4 -vv -m prepared -e 'probe kernel.function("vfs_read") { println($count) exit() }' 2>messages >/dev/null
sed -n 's/.*\(runtime: cached\).*/\1/p' messages
(cd cache && find runtime index -type f | sort) | sed 's,^,./,' >after
grep -E '^./(runtime|index)/' before | cmp - after && echo "nothing made again"

mkdir bin
ln -s "$SPILE" bin/spile
hook() { PATH=$PWD/bin:$PATH sh "$ROOT/compiler/system/kernel-postinst.sh" "$@"; }
hook "$RELEASE" >of_hook 2>&1 && one=0 || one=$?
grep -q "$RELEASE: debug information: was ready" of_hook
hook 9.9.9-none >of_none 2>&1 && none=0 || none=$?
test ! -s of_none
echo "hook: $one, for no kernel: $none"

status=0
"$SPILE" --prepare 9.9.9-none 2>err || status=$?
echo "unknown kernel: $status"
status=0
"$SPILE" --prepare 9.9.9-none "$RELEASE" >two 2>err || status=$?
echo "one of two is unknown: $status, $(grep -c "^$RELEASE: .* was ready$" two) lines"
