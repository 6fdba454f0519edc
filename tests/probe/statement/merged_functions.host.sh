# Shows: statements of functions that gcc has merged with others of equal code, of which debug information has no code: of the kernel
# and of a program.
# stdout: ^kernel kernel\.statement\("__x64_sys_fadvise64@mm/fadvise\.c:[0-9]+"\)$
# stdout: ^first 1$
# stdout: ^all alias 1, wrapper 1$
# limit: 60

list() { "$SPILE" -r "$RELEASE" -l "$1" 2>&1 || true; }
list 'kernel.statement("__x64_sys_fadvise64@*:*")' | head -n 1 | sed 's/^/kernel /'
echo "first $(list 'kernel.statement("__x64_sys_fadvise64")' | grep -c '^kernel.statement')"
cat >merged.c <<'EOS2'
__attribute__((noinline)) int long_one(int *a)
{
	int sum = 0;
	for (int i = 0; i < a[0]; i++)
		sum += a[i] * a[i + 1];
	return sum;
}
__attribute__((noinline)) int another(int *a)
{
	int sum = 0;
	for (int i = 0; i < a[0]; i++)
		sum += a[i] * a[i + 1];
	return sum;
}
static __attribute__((noinline)) int hidden(int *a)
{
	int sum = 0;
	for (int i = 0; i < a[0]; i++)
		sum += a[i] * a[i + 1];
	return sum;
}
int (*of_static)(int *) = hidden;
int main(int count, char **values) { int a[2] = { count, 1 }; return long_one(a) + another(a) + of_static(a); }
EOS2
gcc -g -O2 -o merged merged.c
echo "all alias $(list 'process("./merged").statement("hidden@merged.c:*")' | grep -c '^process' | sed 's/[1-9][0-9]*/1/'), wrapper $(list 'process("./merged").statement("another@merged.c:*")' | grep -c '^process' | sed 's/[1-9][0-9]*/1/')"
