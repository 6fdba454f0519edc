# Shows: a callee is found by the linkage name of what declares it: the same as its name, as gcc 10 writes it for each call, that of
# another function of the program, or that of its definition.
# stdout: ^process\(".*/main"\)\.function\("main@main\.c:4"\)\.callee\("other@other\.c:2"\)$
# stdout: ^process\(".*/main"\)\.function\("main@main\.c:4"\)\.callee\("renamed@other\.c:4"\)$
# stdout: ^process\(".*/main"\)\.function\("main@main\.c:4"\)\.callee\("same@other\.c:1"\)$

cat >other.c <<'END'
int same(int n) { return n + 1; }
int other(int n) { return n + 2; }
int renamed(int n) __asm__("as_linked");
int renamed(int n) { return n + 3; }
END
cat >main.c <<'END'
int same(int n) __asm__("same");
int called(int n) __asm__("other");
int renamed(int n) __asm__("as_linked");
int main(int count, char **words) { return same(count) + called(count) * renamed(count); }
END
gcc -g -O2 -o main main.c other.c
"$SPILE" -l 'process("./main").function("main").callee("*")'
