# Shows: the lines of a function go on behind lambdas, methods of local classes and nested functions in it; a line in these is theirs.
# stdout: ^cc O0 7 8 14 15 .*22 23 24$
# stdout: ^cc O0 line 18 operator\(\)@l\.cc:18$
# stdout: ^cc O0 line 24 outer@l\.cc:24$
# stdout: ^cc O0 near outer@l\.cc:21$
# stdout: ^cc O0 function outer@l\.cc:6$
# stdout: ^c O0 line 9 outer@n\.c:9$
# stdout: ^cc O2 line 23 outer@l\.cc:23$
# stdout: ^c O2 line 10 outer@n\.c:10$
# limit: 60

cat >l.cc <<'EOS'
#define NI __attribute__((noinline))
template <class F> NI int apply(F f, int a)
{
	return f(a);
}
int outer(int a)
{
	int sum = a;
	struct Local {
		int base;
		NI int add(int b) { return base + b; }
	} local;

	local.base = a;
	sum += apply(
		[&](int q) {
			asm volatile("" : "+r"(q));
			return q + sum;
		},
		a);
	sum += local.add(3);
	asm volatile("" : "+r"(sum));
	return sum;
}
int main(int c, char **)
{
	return outer(c);
}
EOS
cat >n.c <<'EOS'
int outer(int a)
{
  int sum = 0;
  __attribute__((noinline)) int inner(int b)
  {
    return b + a;
  }
  sum += inner(1);
  sum += inner(2);
  return sum;
}
int main(int c, char **v)
{
  return outer(c);
}
EOS
list() { "$SPILE" -r "$RELEASE" -l "process(\"./$1\").$2" 2>/dev/null | sed -n 's/.*("\([^"]*\)").*/\1/p' | sort | tr '\n' ' ' | sed 's/ $//'; }
for o in O0 O2; do
  g++ -g -$o -o l$o l.cc
  gcc -g -$o -o n$o n.c
  echo "cc $o" $(list l$o 'statement("outer@l.cc:*")' | tr ' ' '\n' | sed 's/.*://' | sort -n)
  for line in 18 23 24; do echo "cc $o line $line $(list l$o "statement(\"*@l.cc:$line\")")"; done
  echo "cc $o near $(list l$o 'statement("outer@l.cc:19").nearest')"
  echo "cc $o function $(list l$o 'function("*@l.cc:22")')"
  for line in 9 10; do echo "c $o line $line $(list n$o "statement(\"outer@n.c:$line\")")"; done
done
