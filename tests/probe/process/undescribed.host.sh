# Shows: a pattern fits functions in the debug information and those that only the symbol table has, each place once.
# stdout: ^all api_close api_mine api_open$
# stdout: ^called api_close api_mine api_open$
# stdout: ^returned api_close api_mine api_open$
# stdout: ^cold 0$
# stdout: ^places 3$
# stdout: ^alone api_close$
# limit: 60

cat >mine.c <<'EOS'
int api_open(int), api_close(int);
__attribute__((noinline)) int api_mine(int a) { asm volatile("" : "+r"(a)); return api_close(api_open(a)); }
extern __typeof(api_mine) api_main __attribute__((alias("api_mine")));
int main(int count, char **values) { return api_mine(count) + api_main(1); }
EOS
echo 'int api_open(int a) { return a + 1; } int api_close(int a) { return a - 1; }' >no.c
gcc -g -O1 -c mine.c
gcc -O1 -c no.c
gcc -o mixed mine.o no.o
names() { "$SPILE" -r "$RELEASE" -l "process(\"./$1\").$2" 2>&1 | sed -n 's/.*function("\([^"@]*\).*/\1/p' | sort -u | grep -v api_main | tr '\n' ' ' | sed 's/ $//'; }
places() { "$SPILE" -r "$RELEASE" -p3 -e "global n probe process(\"./$1\").$2 { n++ }" | grep -c 'uprobe\.offset = ' || true; }
echo "all $(names mixed 'function("api_*")')"
echo "called $(names mixed 'function("api_*").call')"
echo "returned $(names mixed 'function("api_*").return')"
echo "cold $("$SPILE" -r "$RELEASE" -l 'process("./mixed").function("*")' | grep -c 'cold' || true)"
echo "places $(places mixed 'function("api_*")')"
echo "alone $(names mixed 'function("api_close")')"
