# Shows: -d names a program, not only a module, also with --guest: it is not loaded, and its stacks have names.
# stdout: ^ 0x[0-9a-f]+ : .*busy
# stdout: ^status 0$
# limit: 120

cat >works.c <<'EOC'
#include <unistd.h>
__attribute__((noinline)) void busy(void) { getppid(); asm volatile("" ::: "memory"); }
int main(void) { busy(); return 0; }
EOC
gcc -O2 -o works works.c
status=0
"$SPILE" -r "$RELEASE" --guest -d "$PWD/works" -c "$PWD/works" -e 'probe syscall.getppid { if (pid() == target()) print_ubacktrace() }' || status=$?
echo "status $status"
