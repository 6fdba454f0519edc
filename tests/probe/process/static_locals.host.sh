# Shows: static variables of functions by @var(): in their function, elsewhere, and where several functions have one of that name.
# stdout: ^gcc: elsewhere yes, by file yes, own yes, outside yes, none 0$
# stdout: ^gcc: 2 static variables of that name are in functions: first \(one\.c\), other \(two\.c\); @var\("twice@FILE"\)
# stdout: ^clang: elsewhere yes, by file yes, own yes, outside yes, none 0$
# stdout: ^clang: 2 static variables of that name are in functions: first \(one\.c\), other \(two\.c\);
# stdout: ^g\+\+: elsewhere yes$
# limit: 60

cat >one.c <<'EOC'
int other(int);
int outside = 5;
__attribute__((noinline)) int first(int a)
{
	static int only = 3, twice = 4;

	{
		static int outside = 6;
		outside += a;
		a += outside;
	}
	only += a;
	twice += only;
	asm volatile("" : "+r"(a));
	return only + twice;
}
int main(int count, char **values) { return first(count) + other(count) + outside; }
EOC
cat >two.c <<'EOC'
__attribute__((noinline)) int other(int a)
{
	static long twice = 7;

	twice += a;
	asm volatile("" : "+r"(a));
	return twice;
}
EOC
cat >three.cc <<'EOC'
namespace ns {
struct Held { int value; };
__attribute__((noinline)) int counts(int a)
{
	static Held held = { 9 };
	held.value += a;
	asm volatile("" : "+r"(a));
	return held.value;
}
}
int main(int count, char **) { return ns::counts(count); }
EOC
# var PROGRAM FUNCTION EXPRESSION SIZE SYMBOL: whether that is the variable of the symbol, which has that many bytes.
var() {
  local at
  at=$(nm -S "$1" | awk -v size="$4" -v name="$5" '$2 ~ size "$" && $4 ~ name { print $1 }')
  "$SPILE" -r "$RELEASE" -p3 -e "probe process(\"./$1\").function(\"$2\") { println(&$3) }" >made.c 2>&1
  if grep -q "\b$((0x$at))\(u\?ll\)\?\b" made.c || grep -qi "\b0x0*$(echo "$at" | sed 's/^0*//')\(u\?ll\)\?\b" made.c; then echo yes; else echo "no: $at"; fi
}
for compiler in gcc clang; do
  $compiler -g -O1 -no-pie -fno-pie -fno-toplevel-reorder -c one.c 2>/dev/null || $compiler -g -O1 -fno-pie -c one.c
  $compiler -g -O1 -fno-pie -c two.c
  $compiler -no-pie -o $compiler.out one.o two.o
  echo "$compiler: elsewhere $(var $compiler.out other '@var("only")' 4 'only'), by file $(var $compiler.out main '@var("twice@two.c")' 8 'twice'), own $(var $compiler.out first '@var("twice")' 4 'twice'), outside $(var $compiler.out other '@var("outside")' 4 '^outside$'), none $("$SPILE" -r "$RELEASE" -p3 -e "probe process(\"./$compiler.out\").function(\"main\") { println(&@var(\"missing\")) }" 2>/dev/null | grep -c . || true)"
  "$SPILE" -r "$RELEASE" -p2 -e "probe process(\"./$compiler.out\").function(\"main\") { println(@var(\"twice\")) }" 2>&1 |
    grep -o '2 static variables.*' | sed "s/^/$compiler: /"
done
g++ -g -O1 -no-pie -fno-pie -o cxx.out three.cc
echo "g++: elsewhere $(var cxx.out main '@var("held")->value' 4 'held')"
