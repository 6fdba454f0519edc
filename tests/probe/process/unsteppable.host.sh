# Shows: where the kernel refuses a probe at an instruction of a program, a pattern leaves the place out, a name is an error with the reason,
# and of an indirect function the implementations that are left out are named.
# stdout: ^pattern: shared$
# stdout: ^named: the kernel refuses a probe at the instruction there
# stdout: ^returns: the kernel refuses a probe at the instruction there
# stdout: ^at its start: the kernel refuses a probe at the instruction there
# stdout: ^narrow: shared$
# stdout: ^chosen: 1 of the 2 implementations of `chosen` cannot be probed; fast: the kernel refuses
# stdout: ^chosen: 1$
# stdout: ^marks: 1$

cat >code.s <<'EOS'
	.text
	.globl spin_vector, spin_locked, shared
	.type spin_vector, @function
spin_vector:
	vmovd	%esi, %xmm0
	ret
	.size spin_vector, . - spin_vector
	.type spin_locked, @function
spin_locked:
	lock decl (PTR)
	ret
	.size spin_locked, . - spin_locked
	.type shared, @function
shared:
	mov	%edi, %eax
	ret
	.size shared, . - shared
	.section .note.GNU-stack, "", @progbits
EOS
sed 's/PTR/%rdi/' code.s >wide.s
sed 's/PTR/%edi/' code.s >narrow.s
cat >main.c <<'EOS'
int shared(int);
static int fast(int a);
asm(".type fast, @function\nfast: vpxor %xmm0, %xmm0, %xmm0\n\tmov %edi, %eax\n\tret\n.size fast, . - fast");
static int slow(int a) { return a; }
static void *resolve(void) { return __builtin_cpu_supports("avx") ? (void *)fast : (void *)slow; }
int chosen(int) __attribute__((ifunc("resolve")));
int main(int count, char **v)
{
	asm volatile("990: lock incl %0\n"
		     ".pushsection .note.stapsdt, \"\", \"note\"\n.balign 4\n"
		     ".4byte 992f-991f, 994f-993f, 3\n991: .asciz \"stapsdt\"\n992: .balign 4\n"
		     "993: .8byte 990b, 0, 0\n.asciz \"own\", \"marked\", \"\"\n994: .balign 4\n.popsection\n"
		     ".pushsection .note.stapsdt, \"\", \"note\"\n.balign 4\n"
		     ".4byte 992f-991f, 994f-993f, 3\n991: .asciz \"stapsdt\"\n992: .balign 4\n"
		     "993: .8byte 995f, 0, 0\n.asciz \"own\", \"marks\", \"\"\n994: .balign 4\n.popsection\n995: nop\n"
		     : "+m"(count));
	return shared(count) + chosen(count);
}
EOS
gcc -O1 -o wide main.c wide.s
listed() { "$SPILE" -r "$RELEASE" -l "process(\"./$1\").function(\"s*\")" | grep -oE '"(spin_[a-z]*|shared)"' | tr -d '"' | xargs; }
refused() { "$SPILE" -r "$RELEASE" -p2 -e "global n probe process(\"./wide\").$1 { n++ }" 2>&1 | grep -o 'the kernel refuses a probe.*' | head -n 1; }
echo "pattern: $(listed wide)"
echo "named: $(refused 'function("spin_vector")')"
echo "returns: $(refused 'function("spin_locked").return')"
echo "at its start: $(refused 'mark("marked")')"
gcc -m32 -nostdlib -shared -o narrow narrow.s
echo "narrow: $(listed narrow)"
"$SPILE" -r "$RELEASE" -p3 -e 'global n probe process("./wide").function("chosen") { n++ }' >made.c 2>err
echo "chosen: $(sed -n 's/^warning\[W0115\]: //p' err); $(grep -o 'fast: .*' err)"
echo "chosen: $(grep -c 'uprobe\.offset = ' made.c)"
echo "marks: $("$SPILE" -r "$RELEASE" -p3 -e 'global n probe process("./wide").mark("mark*") { n++ }' | grep -c 'uprobe\.offset = ')"
