# Shows: the lines of a function go on behind lambdas, methods of local classes and nested functions in it; a line in these is theirs.
# stdout: ^cc O0 7 8 14 15 .*22 23 24$
# stdout: ^cc O0 line 18 operator\(\)@l\.cc:18$
# stdout: ^cc O0 line 24 outer@l\.cc:24$
# stdout: ^cc O0 near outer@l\.cc:21$
# stdout: ^cc O0 function outer@l\.cc:6$
# stdout: ^c O0 line 9 outer@n\.c:9$
# stdout: ^cc O2 line 23 outer@l\.cc:23$
# stdout: ^c O2 line 10 outer@n\.c:10$
# stdout: ^template line 8 push<int>@t\.cc:8 push<long int>@t\.cc:8$
# stdout: ^rust line 7 gen<&str>@r\.rs:7 gen<u8>@r\.rs:7$
# stdout: ^rust line 16 m@r\.rs:16$
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
# What is in functions of templates and of implementations has other names around it.
cat >t.cc <<'EOS'
struct Ring {
	long slot;
	template <class T>
	T push(T v)
	{
		auto put = [&](T w) { slot += w; };
		put(v);
		return slot + v;
	}
};
int main(int c, char **) { Ring r = {c}; return r.push<int>(c) + r.push<long>(c); }
EOS
g++ -g -O0 -o t t.cc
echo "template line 8 $(list t 'statement("push@t.cc:8")')"
cat >r.rs <<'EOS'
#[inline(never)]
fn gen<T>(_: T, n: u32) -> u32 {
    let f = |v: u32| {
        v * 2 + n
    };
    let r = f(n);
    r + 1
}
struct S(u32);
impl S {
    #[inline(never)]
    fn m(&self, n: u32) -> u32 {
        let f = |v: u32| {
            v * 2 + n
        };
        f(self.0) + 1
    }
}
fn main() { std::process::exit((gen(1u8, 3) + gen("x", 4) + S(3).m(4)) as i32); }
EOS
rustc -g -o r r.rs
echo "rust line 7 $(list r 'statement("*@r.rs:7")')"
echo "rust line 16 $(list r 'statement("m@r.rs:16")')"
