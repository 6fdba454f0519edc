# Shows: a program without a build-id is told from another build of it by its code: a breakpoint would be in the middle of an
# instruction there. A debug file without one is that of the program if it has the checksum that the program's link to it has.
# stdout: ^debug file: \$n:int$
# stdout: ^older debug file: none$
# stdout: ^same build: work 5, 0 warnings$
# stdout: ^debug information stripped: work 5, 0 warnings$
# stdout: ^other build: , 1 warnings: WARNING: .*/prog is not the file that the script was compiled for \(that has no build-id, and other code\): its probes are not armed
# stdout: ^longer: , 1 warnings: WARNING: .*/prog is not the file
# limit: 60

cat >prog.c <<'END'
#include <stdio.h>
__attribute__((noinline)) int work(int n)
{
#ifdef MORE
	__asm__ volatile("nop; nop; nop");
#endif
	__asm__ volatile("" : : "r"(n) : "memory");
	return n * FACTOR;
}
int main(void)
{
	return work(5) != 5 * FACTOR;
}
END
# With the ELF header in the segment of the code: it differs in a stripped file.
build() { gcc -g -O2 -Wl,--build-id=none -Wl,-z,noseparate-code "$@" prog.c; }
build -DFACTOR=3 -o prog && build -DFACTOR=7 -o other && build -DFACTOR=3 -DMORE -o longer && strip -g -o stripped prog || exit
echo "probe process(\"$PWD/prog\").function(\"work\") { println(\"work \", \$n) }" >prog.stp
"$SPILE" -r "$RELEASE" -p4 -m prog prog.stp >/dev/null || exit
# variables NAME: what is known of the function's variable.
variables() { "$SPILE" --disable-cache -L "process(\"$PWD/$1\").function(\"work\")" 2>/dev/null | grep -o '\$n:int' || echo none; }
objcopy --only-keep-debug prog linked.debug
strip -o linked prog
objcopy --add-gnu-debuglink=linked.debug linked
echo "debug file: $(variables linked)"
objcopy --only-keep-debug longer linked.debug
echo "older debug file: $(variables linked)"
cat >scene.sh <<END
prog=$PWD/prog
END
cat >>scene.sh <<'END'
cd /root
. ./library.sh
# run NAME FILE
run() {
	cp $2 $prog
	spilerun prog.ko -c $prog >out 2>err || true
	echo "$1: $(cat out), $(grep -c WARNING err) warnings$(sed -n 's/^WARNING/: &/p' err)"
}
cp $prog same
run 'same build' same
run 'debug information stripped' stripped
run 'other build' other
run longer longer
END
"$XTASK" guest --program "$PWD/prog" --file stripped --file other --file longer --file prog.ko \
	--file "$ROOT/tests/xtask/src/test/library.sh" --file scene.sh '. /root/scene.sh'
