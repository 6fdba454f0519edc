# Shows: a static function without a symbol is found beside another function of its name.
# stdout: ^statics 2$
# limit: 60

places() { "$SPILE" -r "$RELEASE" -p3 -e "global n probe process(\"./$1\").$2 { n++ }" | grep -c 'uprobe\.offset = ' || true; }
cat >one.c <<'EOS'
static __attribute__((noinline)) int same(int a) { asm volatile("" : "+r"(a)); return a + 1; }
int other(int);
int main(int count, char **values) { return same(count) + other(count); }
EOS
cat >two.c <<'EOS'
__attribute__((noinline)) int same(int a) { asm volatile("" : "+r"(a)); return a + 2; }
int other(int a) { return same(a); }
EOS
gcc -g -O1 -Wl,-x -o statics one.c two.c
echo "statics $(places statics 'function("same")')"
