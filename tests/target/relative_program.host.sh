# Shows: the last argument of @cast and @var may be a program's path without a leading /, as that of process().
# stdout: ^read from the process 3, from the kernel 0$
# limit: 60

cat >prog.c <<'EOF'
struct node { long pad; int value; } node = { 1, 2 };
int counter = 3;
__attribute__((noinline)) int visit(struct node *n) { return n->value + counter; }
int main(void) { return visit(&node); }
EOF
gcc -g -O0 -o prog prog.c
cat >script.stp <<'EOF'
probe process("./prog").function("visit") {
  println(@cast($n, "struct node", "./prog")->value, @var("counter", "./prog"))
}
EOF
"$SPILE" -r "$RELEASE" -p3 script.stp >script.c
echo "read from the process $(grep -c 'spile_read_user(' script.c), from the kernel $(grep -c 'spile_read(' script.c)"
