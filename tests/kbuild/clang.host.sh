# Shows: for a kernel built with clang and lld, scripts are compiled with these, also by the fast build, and run.
# limit: 240
# stdout: ^first: .*\(runtime: built\)\.$
# stdout: ^again: .*\(runtime: cached; embedded C: cached\)\.$
# stdout: ^compiled by clang: clang version [1-9]
# stdout: ^reads counted, plus 3$

# The kernel's own headers, with a configuration as if built by clang: the modules' ABI is the same.
headers=$PWD/headers
mkdir headers
cp -a "/lib/modules/$RELEASE/build/." headers/
for link in scripts tools; do
	target=$(readlink -f "/lib/modules/$RELEASE/build/$link")
	rm -rf "headers/$link"
	ln -s "$target" "headers/$link"
done
ln -s "/usr/lib/debug/boot/vmlinux-$RELEASE" headers/vmlinux
version=$(clang -dM -E -x c /dev/null | sed -n 's/#define __clang_major__ //p')0006
for file in headers/.config headers/include/config/auto.conf headers/include/generated/autoconf.h; do
	sed -i -E "/GCC_ASM_GOTO_OUTPUT|RETHUNK|RETURN_THUNK|AUTO_VAR_INIT|INIT_STACK|_SLS\\>|ZERO_CALL_USED|MCOUNT_USE_CC/d
		s/CC_IS_GCC([ =])/CC_IS_CLANG\\1/; s/LD_IS_BFD([ =])/LD_IS_LLD\\1/
		s/(CONFIG_GCC_VERSION[ =]).*/\\10/; s/(CONFIG_CLANG_VERSION[ =]).*/\\1$version/
		s/(CONFIG_LLD_VERSION[ =]).*/\\1$version/; s/-Wimplicit-fallthrough=5/-Wimplicit-fallthrough/" "$file"
done
echo CONFIG_FTRACE_MCOUNT_USE_OBJTOOL=y | tee -a headers/.config >>headers/include/config/auto.conf
echo '#define CONFIG_FTRACE_MCOUNT_USE_OBJTOOL 1' >>headers/include/generated/autoconf.h

cat >reads.stp <<'EOS'
global reads, names
function plus:long (x:long) %{ STAP_RETURN(STAP_ARG_x + 3); %}
probe kernel.function("vfs_read") { reads++; names[execname()] <<< $count }
probe kernel.function("vfs_read").return { if ($return < 0) reads++ }
probe timer.ms(500) { if (reads && @count(names["spilerun"])) { printf("reads counted, plus %d\n", plus(0)); exit() } }
EOS
export SPILE_CACHE_DIR=$PWD/cache
build() { "$SPILE" -r "$headers" -g -v -p4 -m "clang_$1" reads.stp 2>&1 >/dev/null | sed -n "s/^Pass 4/$1: &/p; /rror/p"; }
build first
build again
echo "compiled by clang: $(readelf -p .comment clang_again.ko | grep -o 'clang version [0-9]*' | head -1)"
"$XTASK" guest --file clang_again.ko 'spilerun clang_again.ko'
