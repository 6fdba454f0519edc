# Shows: `process` alone is the program of a command with quotes, assignments and operators, the reason is said where that cannot be
# found, and .library is any that the process of -x has mapped, those it opened itself included.
# stdout: ^quoted process\("[^"]*/my program"\)\.function\("main@program\.c:5"\)$
# stdout: ^assigned process\("[^"]*/my program"\)\.function\("main@program\.c:5"\)$
# stdout: ^missing 1 error\[E0303\]: cannot find the program `absent_program`$
# stdout: ^built in 0$
# stdout: ^opened process\("[^"]*/opened\.so"\)\.function\("opened_function@opened\.c:1"\)$
# limit: 60

cat >program.c <<'C'
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	if (!dlopen("./opened.so", RTLD_NOW))
		return 1;
	puts("opened");
	fflush(stdout);
	return pause();
}
C
echo 'int opened_function(int a) { return a + 1; }' >opened.c
gcc -g -o 'my program' program.c
gcc -g -shared -fPIC -o opened.so opened.c

spile() {
	"$SPILE" -r "$RELEASE" "$@" 2>&1
}
echo "quoted $(spile -l 'process.function("main")' -c "'./my program' a b")"
echo "assigned $(spile -l 'process.function("main")' -c 'A=1 B="x y" exec "./my program";')"
status=0
message=$(spile -p2 -c 'absent_program a' -e 'probe process.function("main") { println(1) }') || status=$?
echo "missing $status $(echo "$message" | head -n 1)"
status=0
spile -p2 -c 'exit 3' -e 'probe process.begin { println(1) }' >built_in || status=$?
echo "built in $status"

mkfifo ready
'./my program' >ready &
read -r line <ready
echo "$line $(spile -l 'process.library("*opened*").function("opened_function")' -x $!)"
kill $!
