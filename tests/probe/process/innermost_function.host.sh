# Shows: a statement that is given by its address is of the innermost function that is inlined there: its variables hide those of the
# functions around it, which are in scope too. Minima and maxima that gcc has computed only for debuggers are known, and @defined says
# which elements of an array in registers have a value.
# stdout: ^inner: n 13, twice 26, other 4, names n=0xd twice=0x1a$
# stdout: ^limited: low 3 high 9 small -2$
# stdout: ^elements compile$
# limit: 120

cat >near.c <<'EOC'
#define KEPT __attribute__((noinline, noclone))
struct three { char each[3]; };
static inline __attribute__((always_inline)) int inner(int n)
{
	int twice = n * 2;

	asm volatile(".globl here\nhere: nop" : : "r"(twice), "r"(n));
	return twice;
}
KEPT int outer(int n, int other)
{
	int m = inner(n + 8);

	asm volatile("" : : "r"(n), "r"(other));
	return m + n + other;
}
KEPT int limited(unsigned long a, unsigned long b, int c)
{
	unsigned long low = a < b ? a : b, high = a < b ? b : a;
	int small = c < 5 ? c : 5;

	asm volatile(".globl there\nthere: nop" : : "r"(a), "r"(b), "r"(c));
	return a + b + c;
}
volatile int sink;
KEPT struct three shorten(double unused, long number)
{
	struct three made = {{number, number + 1, 'z'}};

	sink = made.each[1];
	return made;
}
int main(int argc, char **argv)
{
	return outer(argc + 4, argc + 3) + limited(argc + 8, argc + 2, argc - 3) + shorten(0.5, argc).each[0] == 0;
}
EOC
gcc -g -O2 -o near near.c
at() { echo "0x$(nm near | awk -v name="$1" '$3 == name { print $1 }')"; }
cat >near.stp <<EOC
probe process("$PWD/near").statement($(at here)) { printf("%s: n %d, twice %d, other %d, names %s\n", ppfunc(), \$n, \$twice, \$other, \$\$vars) }
probe process("$PWD/near").statement($(at there)) { printf("%s: low %d high %d small %d\n", ppfunc(), \$low, \$high, \$small) }
EOC
"$SPILE" -r "$RELEASE" --guest -c "$PWD/near" near.stp
"$SPILE" -r "$RELEASE" -p2 -e "probe process(\"$PWD/near\").statement(\"shorten@near.c:*\") {
  if (@defined(\$made->each[0])) println(\$made->each[0])
  if (@defined(\$made->each[1])) println(\$made->each[1])
  if (@defined(\$made->each[2])) println(\$made->each[2])
}" >/dev/null && echo elements compile
