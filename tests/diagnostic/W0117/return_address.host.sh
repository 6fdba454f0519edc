# Shows: the return of a function that is named and uses its return address has a warning; a pattern, which leaves it out, has none, nor
# have entries, other functions and listings.
# stdout: ^named: 1$
# stdout: ^by a pattern: 0$
# stdout: ^entry: 0$
# stdout: ^other: 0$
# stdout: ^listed: 0$

cat >uses.c <<'EOC'
#include <setjmp.h>
static jmp_buf place;
__attribute__((noinline)) int other(int n) { return n + 1; }
__attribute__((naked, noinline)) void *keeps(void **to) { asm("mov (%rsp), %rax; mov %rax, (%rdi); ret"); }
int main(int count, char **v) { void *at; return keeps(&at) == at && setjmp(place) ? 1 : other(count) > 100; }
EOC
gcc -g -O1 -o uses uses.c
warnings() { "$SPILE" -r "$RELEASE" -p2 -e "$1" 2>&1 | grep -c '^warning\[W0117\]' || true; }
echo "named: $(warnings 'global n probe process("./uses").function("keeps").return { n++ }')"
echo "by a pattern: $(warnings 'global n probe process("./uses").function("*@uses.c").return { n++ }')"
echo "entry: $(warnings 'global n probe process("./uses").function("keeps") { n++ }')"
echo "other: $(warnings 'global n probe process("./uses").function("other").return { n++ }')"
echo "listed: $("$SPILE" -r "$RELEASE" -l 'process("./uses").function("keeps").return' 2>&1 | grep -c '^warning.W0117' || true)"
