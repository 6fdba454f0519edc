# Shows: local variables of a function that aligns its frame itself, which have one location for all of it, are not
# available at its first instruction, where neither frame pointer nor stack pointer is the function's; after it they
# are.
# stdout: ^entry: \$n:int \$o:struct rec\*\*$
# stdout: ^inside: .*\$l:struct rec\*.*\$x:struct rec

cat >near.c <<'EOF'
struct rec { long a, b; };
__attribute__((noinline)) int get(struct rec **at, struct rec *to) { __asm__ volatile("" : : "r"(at), "r"(to) : "memory"); return 1; }
__attribute__((noinline)) int near(int n, struct rec **o)
{
	struct rec *l = *o, x __attribute__((aligned(64)));
	get(&l, &x);
	return n + l->b + x.a;
}
int main(int argc, char **argv)
{
	struct rec one = { argc, argc }, *at = &one;
	return near(argc, &at);
}
EOF
gcc -g -O2 -o near near.c
"$SPILE" -r "$RELEASE" -L 'process("./near").function("near")' | sed 's/^[^ ]* /entry: /'
"$SPILE" -r "$RELEASE" -L 'process("./near").statement("near@*:7")' | sed 's/^[^ ]* /inside: /'
