# Shows: functions that only the symbol table has, of assembler files and of parts without debug information: those that others may
# call, their returns, clones by their names; not parts that are jumped to, and of returns none of functions that keep their return address.
# stdout: ^all x_clone\.isra\.0 x_global x_half\.part\.0 x_keeps x_keeps_too x_mine x_open x_plain x_static$
# stdout: ^exported x_global x_keeps x_keeps_too x_mine x_plain$
# stdout: ^static other files cannot call it: it is static$
# stdout: ^returned x_clone\.isra\.0 x_global x_half\.part\.0 x_mine x_plain x_static$
# stdout: ^clone x_clone\.isra\.0$
# stdout: ^cold x_rare\.cold$
# stdout: ^cold returned it is a part of a function, which that jumps to$
# stdout: ^keeps x_keeps$
# stdout: ^described x_described\.constprop\.0 \$a:int
# stdout: ^stripped of debug information: all x_clone\.isra\.0 x_described\.constprop\.0 x_global x_half\.part\.0 x_keeps x_keeps_too x_mine x_open x_plain x_static$
# stdout: ^stripped of debug information: returned x_clone\.isra\.0 x_described\.constprop\.0 x_global x_half\.part\.0 x_mine x_plain x_static$
# limit: 60

cat >mine.c <<'EOC'
int x_global(int), x_plain(int);
static __attribute__((noinline)) int x_described(int a, int b)
{
	asm volatile("" : "+r"(a));
	return a * b + (a > b ? b : a);
}
__attribute__((noinline)) int x_mine(int a)
{
	return x_global(x_plain(a)) + x_described(a, 7);
}
int main(int count, char **values) { return x_mine(count) + x_described(count, 7); }
EOC
cat >no.c <<'EOC'
static __attribute__((noinline)) int x_static(int a) { asm volatile("" : "+r"(a)); return a + 1; }
int x_global(int a) { return x_static(a) + x_static(2 * a); }
EOC
cat >asm.s <<'EOC'
	.text
	.globl x_plain, x_keeps, x_keeps_too
	.type x_plain, @function
x_plain:
	push %rbx
	mov %edi, %eax
	pop %rbx
	ret
	.size x_plain, . - x_plain
	.type x_keeps, @function
x_keeps:
	mov (%rsp), %rax
	mov %rax, (%rdi)
	xor %eax, %eax
	ret
	.size x_keeps, . - x_keeps
	.type x_keeps_too, @function
x_keeps_too:
	jmp x_keeps
	.size x_keeps_too, . - x_keeps_too
	.type x_open, @function
x_open:	ud2
	.size x_open, . - x_open
	.type x_clone.isra.0, @function
x_clone.isra.0:
	ret
	.size x_clone.isra.0, . - x_clone.isra.0
	.type x_half.part.0, @function
x_half.part.0:
	ret
	.size x_half.part.0, . - x_half.part.0
	.type x_rare.cold, @function
x_rare.cold:
	ret
	.size x_rare.cold, . - x_rare.cold
	.section .note.GNU-stack, "", @progbits
EOC
gcc -g -O2 -fno-ipa-icf -c mine.c
gcc -O2 -c no.c
as -o asm.o asm.s
gcc -o mixed mine.o no.o asm.o
strip --strip-debug -o bare mixed
list() { "$SPILE" -r "$RELEASE" -l "process(\"./$1\").$2" 2>&1; }
names() { list "$1" "$2" | sed -n 's/.*function("\([^"@]*\).*/\1/p' | sort -u | tr '\n' ' ' | sed 's/ $//'; }
why() { list "$1" "$2" | grep -o "$3.*" | head -n 1; }
echo "all $(names mixed 'function("x_*")' | sed 's/x_described //')"
echo "exported $(names mixed 'function("x_*").exported')"
echo "static $(why mixed 'function("x_static").exported' 'other files cannot')"
echo "returned $(names mixed 'function("x_*").return' | sed 's/x_described //')"
echo "clone $(names mixed 'function("x_clone.isra.0")')"
echo "cold $(names mixed 'function("x_rare.cold")')"
echo "cold returned $(why mixed 'function("x_rare.cold").return' 'it is a part')"
echo "keeps $(names mixed 'function("x_keeps").return')"
echo "described $("$SPILE" -r "$RELEASE" -L 'process("./mixed").function("x_described.constprop.0")' | sed 's/.*function("\([^"@]*\)[^ ]*/\1/')"
echo "stripped of debug information: all $(names bare 'function("x_*")')"
echo "stripped of debug information: returned $(names bare 'function("x_*").return')"
