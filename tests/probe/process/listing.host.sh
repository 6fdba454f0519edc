# Shows: the ways to name places in a program, and listings of them; symbols packed in the file, debug information from a server and below
# another root directory, casts to a program's types, programs by build-id.
# stdout: ^forms alike: 3$
# stdout: ^text .* no statement begins at `\*@prog\.c:6`$
# stdout: ^text .* lines that have code: 5, 7, 11, 18; \.nearest selects the nearest$
# stdout: ^near 3$
# stdout: ^address begins 1, inside: no statement begins there; one begins at 0x[0-9a-f]+, and \.nearest takes it$
# stdout: ^deep process\(".*/prog"\)\.function\("main@prog\.c:17"\)\.callee\("middle@prog\.c:10"\)\.callee\("inner@prog\.c:3"\)$
# stdout: ^deep process\(".*/prog"\)\.function\("main@prog\.c:17"\)\.callee\("middle@prog\.c:10"\)\.callee\("inner@prog\.c:3"\)\.return$
# stdout: ^label process\(".*/labels"\)\.function\("jumps@labels\.c:5"\)\.label\("out"\)$
# stdout: ^linked process\("/[^"]*/labels"\)\.begin$
# stdout: ^lines  +8 \* +return p->x \+ twice;$
# stdout: ^lines  +15 \* +return result;$
# stdout: ^methods callee\("add@calls\.cc:16 callee\("add@calls\.cc:17 callee\("most@calls\.cc:18 callee\("most@calls\.h:1 callee\("twice<long( int)?>@calls\.cc:7$
# stdout: ^header process\("\S*/calls"\)\.function\("most@calls\.h:1"\)$
# stdout: ^operators listed: 6, found: 6$
# stdout: ^resolved +inner\+0x0 in \.text of .*/prog \(0x[0-9a-f]+\), build-id [0-9a-f]{40}$
# stdout: ^resolved +\$p->x: int in \[%rdi\]$
# stdout: ^packed process\(".*/mini"\)\.function\("inner"\)$
# stdout: ^packed 0$
# stdout: ^served process\(".*/stripped"\)\.function\("inner@prog\.c:3"\) \$p:struct point\* \$n:int$
# stdout: ^below process\("/usr/bin/prog"\)\.function\("inner@prog\.c:3"\) \$p:struct point\* \$n:int$
# stdout: ^by build-id process\("/usr/bin/prog"\)\.function\("inner@prog\.c:3"\)$
# stdout: ^cast 0$
# stdout: ^forms of programs: [1-9][0-9]{2}$
# stdout: ^by name in PATH 0$
# stdout: ^library by name process\("/[^"]*/libc\.so\.6"\)\.function\("malloc"\)$
# stdout: ^no library: error\[E0303\]: no library of /.*/prog fits `libz\*`$
# stdout: ^no library:   = there is: .*libc\.so\.6
# stdout: ^provider .*the providers of markers in .*/marked are own$
# stdout: ^static .*other files cannot call it: it is static$
# stdout: ^untold error\[E0122\]: `\$return` has no value at inner
# stdout: ^untold   = without debug information nothing tells its type: returnval\(\) is the register
# stdout: ^by symbol process\(".*/untold"\)\.function\("inner"\)$
# stdout: ^by symbol process\(".*/untold"\)\.function\("inner"\)\.return$
# stdout: ^by symbol process\(".*/untold"\)\.statement\(0x[0-9a-f]+\)$
# stdout: ^by symbol .*nothing tells whether an instruction begins there
# stdout: ^by symbol error\[E0401\]
# stdout: ^by symbol process\(".*/untold"\)\.statement\(0x[0-9a-f]+\)\.absolute$
# stdout: ^lost process\(".*/lost"\)\.function\("first"\)$
# stdout: ^lost .*no function's symbol tells what is there
# stdout: ^variable .* no symbol of a global variable of that name; did you mean all\?$
# stdout: ^of a library .* it is a library: name the program that is to be watched$
# stdout: ^of a 32-bit program process\("\./narrow"\)\.data\("counter"\)\.write$
# limit: 60

cat >prog.c <<'EOF'
struct point { int x, y; };
struct point all = { 3, 4 };
__attribute__((noinline)) int inner(struct point *p, int n)
{
	int twice = n * 2;

	asm volatile("" : "+r"(twice));
	return p->x + twice;
}
__attribute__((noinline)) int middle(struct point *p, int n)
{
	int result = inner(p, n + 1);

	asm volatile("" : "+r"(result));
	return result;
}
int main(void)
{
	int result = middle(&all, 5);

	asm volatile("" : "+r"(result));
	return result != 15;
}
EOF
gcc -g -O2 -Wl,--build-id=sha1 -o prog prog.c
list() { "$SPILE" -r "$RELEASE" "$@"; }
point() { echo "process(\"./prog\").statement(\"$1\")"; }
id=$(readelf -n prog | awk '/Build ID/ {print $3}')
entry=$((0x$(nm prog | awk '$3 == "inner" {print $1}')))

# The same statement.
list -L "$(point 'inner@prog.c:5')" >plain
same=0
for form in 'inner@prog.c+2' '*@prog.c:5' 'inner@*:5'; do
  list -L "$(point "$form")" >other
  ! cmp plain other || same=$((same + 1))
done
echo "forms alike: $same"
list -l "$(point '*@prog.c:6')" 2>&1 | sed 's/^/text /' || true
echo "near $(list -l "$(point '*@prog.c:6').nearest" | grep -cE '(inner@prog.c:5|middle@prog.c:11|main@prog.c:18)"')"
address() { list -l "process(\"./prog\").statement($1)$2"; }
[ "$(address $entry)" = "$(address $((entry + 1)) .nearest)" ] || echo "not the nearest"
echo "address begins $(address $entry | wc -l), inside: $(address $((entry + 1)) 2>&1 | grep -o 'no statement .*')"
list -l 'process("./prog").function("main").callees(2)' | sed 's/^/deep /'
list -l 'process("./prog").function("main").callees(2).return' | sed 's/^/deep /'
cat >labels.c <<'EOF'
__attribute__((noinline)) int jumps(int x)
{
	if (x > 2) goto out;
	x = 9;
out:	asm volatile("" : "+r"(x)); return x;
}
int main(int argc, char **argv) { return jumps(argc); }
EOF
gcc -g -O2 -o labels labels.c
ln -s labels linked
list -l 'process("./labels").function("jumps").label("out")' | sed 's/^/label /'
list -l 'process("./linked").begin' | sed 's/^/linked /'
list --source . --list-lines 'process("./prog").function("inner")' 2>&1 | sed 's/^/lines /'
# The text is where the program was compiled.
prog=$PWD/prog
(cd / && list --list-lines "process(\"$prog\").function(\"middle\")" 2>&1 | sed 's/^/lines /')
cat >calls.h <<'EOF'
struct Other { KEPT int most(int by) { asm volatile("" : "+r"(by)); return by; } };
EOF
cat >calls.cc <<'EOF'
#define KEPT __attribute__((noinline, noclone))
struct Cart {
	int total = 0;
	void add(int);
	int add(const char *);
	int most(int) const;
	template <typename T> KEPT T twice(T by) { total += by; return total * 2; }
};
#include "calls.h"
int main(int count, char **)
{
	Cart cart;
	cart.add(count);
	return cart.add("x") + cart.most(3) + cart.twice<long>(count) + Other().most(2);
}
KEPT void Cart::add(int by) { asm volatile("" : "+r"(by)); total += by; }
KEPT int Cart::add(const char *text) { asm volatile("" : "+r"(text)); return *text; }
KEPT int Cart::most(int by) const { asm volatile("" : "+r"(by)); return total - by; }
EOF
g++ -g -O2 -o calls calls.cc
echo methods $(list -l 'process("./calls").function("main").callees' | grep -o 'callee("[^"]*' | sort)
echo header $(list -l 'process("./calls").function("most@calls.h")')
cat >operators.cc <<'EOC'
using size = decltype(sizeof(0));
struct Box {
	long v;
	operator long() const { return v; }
	int operator()(int a) { return v + a; }
	Box operator,(const Box &o) { return Box{v + o.v}; }
	template <typename T> T operator*(T o) { return v * o; }
};
char room[64];
void *operator new[](size n) { return room + n; }
Box operator""_x(unsigned long long n) { return Box{(long)n}; }
int main(int c, char **) { Box b{c}; char *p = new char[c]; Box d = (b, 3_x); return b(2) + (long)d + b * 3 + *p; }
EOC
g++ -w -g -O0 -o operators operators.cc
# Every listed point can be copied.
list -l 'process("./operators").function("*")' | grep 'operator[^s/].*@' >points
same=0
while read -r point; do
  [ "$(list -l "$point")" != "$point" ] || same=$((same + 1))
done <points
echo "operators listed: $(wc -l <points), found: $same"
list --resolve -e 'probe process("./prog").function("inner") { println($n, $p->x) }' | sed 's/^/resolved /'

# A file as Fedora strips it.
objcopy --only-keep-debug prog mini.syms
echo inner >keep
objcopy --strip-all --keep-symbols=keep mini.syms
xz mini.syms
strip --strip-all -o mini prog
objcopy --add-section .gnu_debugdata=mini.syms.xz mini
list -L 'process("./mini").function("inner")' | sed 's/^/packed /'
list -p3 -e 'probe process("./mini").function("inner").return { println(returnval()) }' >/dev/null
echo "packed $?"

mkdir served
objcopy --only-keep-debug prog served/prog.debug
strip --strip-all -o stripped prog
port=$((20000 + $$ % 20000))
debuginfod -p "$port" -d :memory: -t 0 -F served >server.log 2>&1 &
server=$!
trap 'kill $server 2>/dev/null || true' EXIT
for tenth in $(seq 1 300); do
  ! curl -sf "http://127.0.0.1:$port/buildid/$id/debuginfo" >/dev/null || break
  sleep 0.1
done
(export DEBUGINFOD_URLS="http://127.0.0.1:$port" SPILE_CACHE_DIR="$PWD/cache"; list -L 'process("./stripped").function("inner")') | sed 's/^/served /'

# Programs of another system.
mkdir -p root/usr/bin root/usr/lib root/boot
ln -s /usr/lib/debug root/usr/lib/debug
ln -s /lib root/lib
cp prog root/usr/bin/
list --sysroot root -L 'process("/usr/bin/prog").function("inner")' | sed 's/^/below /'
list --sysroot root -l "process(\"$id\").function(\"inner\")" | sed 's/^/by build-id /'

list -p3 -e 'probe process("./prog").function("middle") { println(@cast(&@var("all"), "struct point", "./prog")->y, $$vars, $p$$, @defined($nothing)) }' >/dev/null
echo "cast $?"
echo "forms of programs: $(list --dump-probe-types | grep -c '^process')"

# Programs and libraries by names alone, and the messages if none matches.
PATH=$PWD:$PATH "$SPILE" -r "$RELEASE" -p2 -e 'probe timer.s(1) { println(@cast(1, "point", "prog")->y) }' >name.out 2>&1
echo "by name in PATH $?"
list -l 'process("libc.so.6").function("malloc")' | sed 's/^/library by name /'
{ list -l 'process("./prog").library("libz*").function("*")' 2>&1 || true; } | sed 's/^/no library: /'
cat >marked.s <<'EOF'
	.globl main
main:	xor %eax, %eax
990:	nop
	ret
	.section .note.stapsdt, "", "note"
	.balign 4
	.4byte 992f-991f, 994f-993f, 3
991:	.asciz "stapsdt"
992:	.balign 4
993:	.8byte 990b, _.stapsdt.base, 0
	.asciz "own", "here", ""
994:	.balign 4
	.section .note.GNU-stack, "", @progbits
	.section .stapsdt.base, "aG", "progbits", .stapsdt.base, comdat
	.weak _.stapsdt.base
_.stapsdt.base:
	.space 1
EOF
gcc -o marked marked.s
{ list -l 'process("./marked").provider("owm").mark("*")' 2>&1 || true; } | sed 's/^/provider /'
echo 'static __attribute__((noinline)) int own(int a) { return a * 3; } int main(int c, char **v) { return own(c); }' >static.c
gcc -g -O1 -o static static.c
{ list -l 'process("./static").function("own").exported' 2>&1 || true; } | sed 's/^/static /'
gcc -O2 -o untold prog.c
{ "$SPILE" -r "$RELEASE" -p2 -e 'probe process("./untold").function("inner").return { println($return) }' 2>&1 || true; } | sed 's/^/untold /'
# Addresses where only symbols tell what is there.
untold=$((0x$(nm untold | awk '$3 == "inner" {print $1}')))
by_symbol() { { list "$@" 2>&1 || true; } | sed 's/^/by symbol /'; }
by_symbol -l "process(\"./untold\").function($untold)"
by_symbol -l "process(\"./untold\").function($((untold + 1))).return"
by_symbol -l "process(\"./untold\").statement($untold)"
by_symbol -l "process(\"./untold\").statement($((untold + 1)))"
by_symbol -p2 -e "probe process(\"./untold\").statement($((untold + 1))).absolute { println(1) }"
by_symbol -g -l "process(\"./untold\").statement($((untold + 3))).absolute"
# A function without a symbol is not the one before it.
echo 'static int second(int); __attribute__((noinline)) int first(int x) { return x + 1; }
static __attribute__((noinline)) int second(int x) { return x * 3; } int main(int c, char **v) { return first(c) + second(c); }' >lost.c
gcc -O1 -fno-toplevel-reorder -o lost lost.c
first=$((0x$(nm lost | awk '$3 == "first" {print $1}')))
second=$((0x$(nm lost | awk '$3 == "second" {print $1}')))
strip --keep-symbol=first lost
for at in $((first + 1)) $second; do
  { list -l "process(\"./lost\").function($at)" 2>&1 || true; } | sed 's/^/lost /'
done
{ list -l 'process("./prog").data("al").write' 2>&1 || true; } | sed 's/^/variable /'
{ list -l 'process("libc.so.6").data("environ").write' 2>&1 || true; } | sed 's/^/of a library /'
printf '.globl _start\n_start: hlt\n.data\n.globl counter\n.type counter, @object\n.size counter, 4\ncounter: .long 0\n' >narrow.s
gcc -m32 -nostdlib -static-pie -o narrow narrow.s
{ list -l 'process("./narrow").data("counter").write' 2>&1 || true; } | sed 's/^/of a 32-bit program /'
