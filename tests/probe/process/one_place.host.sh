# Shows: a place in a program is probed once, though several units describe its function or several symbols name it.
# stdout: ^entries 1$
# stdout: ^returns 1$
# stdout: ^statements 1$
# stdout: ^labels 1$
# stdout: ^callees 1$
# stdout: ^inlined 3$
# stdout: ^symbols 1 first_name$
# stdout: ^listed 2$
# stdout: ^assembly 1, returns 1, listed 2$
# stdout: ^of the kernel 1, mm/fadvise\.c$
# stdout: ^listed there 1$
# limit: 60

mkdir -p below
cat >h.h <<'EOS'
template <class T> T add(T a)
{
	asm volatile("" : "+r"(a));
	return a + 1;
}
template <class T> __attribute__((noinline)) T common(T a)
{
	asm volatile("" : "+r"(a));
	if (a > 100)
		goto out;
	a = add(a);
out:
	return a * 2;
}
EOS
for unit in a b c; do
  printf '#include "h.h"\nint of_%s(int a)\n{\n\treturn common(a);\n}\n' $unit >$unit.cc
done
sed -i 's/"h.h"/"..\/h.h"/' c.cc
mv c.cc below
echo 'int main(int count, char **) { return of_c(of_b(of_a(count))); }' >main.cc
sed -i '1i int of_a(int), of_b(int), of_c(int);' main.cc
g++ -g -O1 -fuse-ld=bfd -o three a.cc b.cc below/c.cc main.cc
places() { "$SPILE" -r "$RELEASE" -p3 -e "global n probe process(\"./$1\").$2 { n++ }" | grep -c 'uprobe\.offset = ' || true; }
echo "entries $(places three 'function("common")')"
echo "returns $(places three 'function("common").return')"
echo "statements $(places three 'statement("common@h.h:9")')"
echo "labels $(places three 'function("common").label("out")')"
echo "callees $(places three 'function("common").callee("add*")')"
# Not these: each unit has a copy of its own where it calls it.
cat >own.h <<'EOS'
static inline __attribute__((always_inline)) int own(int a) { asm volatile("" : "+r"(a)); return a + 1; }
EOS
for unit in a b c; do
  printf '#include "own.h"\nint of_%s(int a) { return own(a); }\n' $unit >$unit.cc
done
g++ -g -O2 -o owns a.cc b.cc c.cc main.cc
echo "inlined $(places owns 'function("own").inline')"
cat >alias.c <<'EOS'
__attribute__((noinline)) int __first_name(int a) { asm volatile("" : "+r"(a)); return a; }
extern __typeof(__first_name) first_name __attribute__((alias("__first_name")));
int main(int count, char **values) { return first_name(count); }
EOS
gcc -O1 -o alias alias.c
echo "symbols $(places alias 'function("*first_name")') $("$SPILE" -r "$RELEASE" -p3 -e 'probe process("./alias").function("*first_name") { println(ppfunc()) }' | grep -ow 'first_name' | sort -u)"
echo "listed $("$SPILE" -r "$RELEASE" -l 'process("./alias").function("*first_name")' | wc -l)"
# The assembler describes a function for each of its names.
cat >asm.s <<'EOS'
	.text
	.globl outer, __outer
	.type outer, @function
	.type __outer, @function
outer:
__outer:
	mov %edi, %eax
	ret
	.size outer, . - outer
	.size __outer, . - __outer
	.section .note.GNU-stack, "", @progbits
EOS
as -g -o asm.o asm.s
echo 'int outer(int); int main(int count, char **values) { return outer(count); }' >caller.c
gcc -g -O1 -o asm caller.c asm.o
echo "assembly $(places asm 'function("*outer")'), returns $(places asm 'function("*outer").return'), listed $("$SPILE" -r "$RELEASE" -l 'process("./asm").function("*outer")' | wc -l)"
# A weak function, which calls for a system call that the kernel lacks would reach, and the one that replaces it; neither has
# code of its own in the debug information.
call='kernel.function("__x64_sys_fadvise64")'
"$SPILE" -r "$RELEASE" -p3 -e "global n probe $call { n++ }" >call.c
echo "of the kernel $(grep -c '^		\.address = ' call.c), $(grep -o 'mm/fadvise\.c' call.c | head -n 1)"
echo "listed there $("$SPILE" -r "$RELEASE" -l "$call" | wc -l)"
