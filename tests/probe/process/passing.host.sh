# Shows: where arguments and return values of programs are, as the calling conventions of C, C++ and Rust have them; unoptimised
# functions are probed behind their prologues, optimised ones at their entries, and no parameter is read before it is stored.
# stdout: ^c unnamed: \$b %rsi$
# stdout: ^c long_double: \$a %rdi \$b %rsi$
# stdout: ^c complex_double: \$a %rdi$
# stdout: ^c complex_long: \$a %rdi$
# stdout: ^c quad: \$a %rdi$
# stdout: ^c boxed: \$a %rdi$
# stdout: ^c vector: \$b %rdi$
# stdout: ^c quads: \$b %rdi \$d computed$
# stdout: ^c stacked: \$f %r9 \$g \[%rsp\+8\] \$h \[%rsp\+8\+0x20\]$
# stdout: ^c point: \$p->y bits 32-63 of %rdi \$k %rcx \$return->y bits 32-63 of %rax$
# stdout: ^c \$return of long double: it is returned in a floating-point register \(st0\)
# stdout: ^c\+\+ made: \$a %rsi \$return->v \[%rax\]$
# stdout: ^c\+\+ fixed: \$a %rsi \$return->v \[%rax\]$
# stdout: ^c\+\+ moved: \$a %rdi \$return->v %rax$
# stdout: ^c\+\+ plain: \$a %rdi \$return->v %rax$
# stdout: ^c\+\+ unique: \$a %rsi$
# stdout: ^c\+\+ both: \$a %rdi \$return->second bits 32-63 of %rax$
# stdout: ^c\+\+ second: \$n->v \[%rdi\] \$b %rsi$
# stdout: ^c\+\+ holds: \$h->n->v \[%rdi\] \$b %rsi$
# stdout: ^c\+\+ virtuals: \$w->v \[%rdi\+8\] \$b %rsi$
# stdout: ^c\+\+ only: \$n->v \[%rdi\]$
# stdout: ^c\+\+ tagged: \$d computed$
# stdout: ^c\+\+ text: \$n %rsi$
# stdout: ^c\+\+ Left::Left: \$a %rsi \$c %rdx$
# stdout: ^clang made: \$a %rsi \$return->v \[%rax\]$
# stdout: ^clang fixed: \$a %rsi \$return->v \[%rax\]$
# stdout: ^clang moved: \$a %rdi \$return->v %rax$
# stdout: ^clang plain: \$a %rdi \$return->v %rax$
# stdout: ^clang unique: \$a %rsi$
# stdout: ^clang both: \$a %rdi \$return->second bits 32-63 of %rax$
# stdout: ^clang second: \$n->v \[%rdi\] \$b %rsi$
# stdout: ^clang holds: \$h->n->v \[%rdi\] \$b %rsi$
# stdout: ^clang virtuals: \$w->v \[%rdi\+8\] \$b %rsi$
# stdout: ^clang only: \$n->v \[%rdi\]$
# stdout: ^clang tagged: \$d computed$
# stdout: ^clang text: \$n %rsi$
# stdout: ^clang Left::Left: \$a %rsi \$c %rdx$
# stdout: ^rust pair: \$n %rdi \$return->__1 %rdx$
# stdout: ^rust taking: \$u->b %rsi \$n %rdx$
# stdout: ^rust bigs: \$c %rsi$
# stdout: ^rust array: \$n %rsi \$return\[1\] \[%rdi\+8\] at the entry$
# stdout: ^rust under: \$n %rsi$
# stdout: ^rust three: error
# stdout: ^rust vec: \$v->len \[%rdi\+0?x?[0-9a-f]+\]$
# stdout: ^clang text: \$s->_M_string_length \[%rdi\+8\]$
# stdout: ^optimised f\+0x0 \$k:%rdx$
# stdout: ^optimised small\+0x0 \$p->y:bits 32-63 of %rdi \$k:%rsi$
# stdout: ^unoptimised plain\+0x[1-9a-f][0-9a-f]* \$a:\[%rbp[^]]*\] \$b:\[%rbp[^]]*\]$
# stdout: ^unoptimised aligned\+0x[1-9a-f][0-9a-f]* \$a:\[%rsp[^]]*\]$
# stdout: ^unoptimised _Z4only2NT\+0x[1-9a-f][0-9a-f]* \$n->v:\[\[%rbp[^]]*\]\]$
# stdout: ^unoptimised _Z4only2NT\+0x0 \$n->v:\[%rdi\]$
# stdout: ^unoptimised _Z4textNSt[^ ]*\+0x[1-9a-f][0-9a-f]* \$s->_M_string_length:
# stdout: ^unoptimised [^ ]*vec[^ ]*\+0x[1-9a-f][0-9a-f]* \$v->len:
# stdout: ^alias plain\+0x0 \$a:%rdi \$b:%rsi$
# stdout: ^number plain\+0x0 \$a:%rdi \$b:%rsi$

cat >pass.c <<'EOC'
struct B { char b[12]; };
struct P { int x, y; };
typedef float v4 __attribute__((vector_size(16)));
struct L { long double l; };
#define KEPT __attribute__((noinline, noclone))
KEPT void sink(void *p) { __asm__ volatile("" : : "r"(p) : "memory"); }
KEPT int unnamed(int, int b) { sink(&b); return b; }
KEPT long double long_double(int a, int b) { sink(&b); return a; }
KEPT _Complex double complex_double(int a) { sink(&a); return a; }
KEPT _Complex long double complex_long(int a) { sink(&a); return a; }
KEPT __float128 quad(int a) { sink(&a); return a; }
KEPT struct L boxed(int a) { struct L l = { 1 }; sink(&a); return l; }
KEPT int vector(v4 v, int b) { sink(&b); return b + v[0]; }
KEPT int quads(__float128 q, double d, int b) { sink(&b); return b + q + d; }
KEPT int stacked(int a, int b, int c, int d, int e, int f, int g, long double x, int h) { sink(&h); return a + b + c + d + e + f + g + h + x; }
KEPT struct P point(struct P p, struct B b, int k) { sink(&b); p.x += k; return p; }
KEPT long f(struct B p, long k)
{
	if (k == 5)
		return 7;
	sink(&p);
	return p.b[0] + p.b[3];
}
KEPT long small(struct P p, long k)
{
	if (k == 5)
		return 7;
	sink(&p);
	return p.x;
}
long also(int a, int b) __attribute__((alias("plain")));
KEPT long plain(int a, int b)
{
	sink(&a);
	return a + b;
}
KEPT long aligned(int a)
{
	int x[8] __attribute__((aligned(32)));

	sink(x);
	return a + x[0];
}
int main(int c, char **v)
{
	v4 w = { 1 };
	struct B b = { { 1 } };
	struct P p = { 1, 2 };

	return unnamed(1, c) + long_double(1, c) + complex_double(c) + complex_long(c) + quad(c) + boxed(c).l + vector(w, c) + quads(1, 2, c) +
	       stacked(1, 2, 3, 4, 5, 6, 7, 8, c) + point(p, b, c).x + f(b, c) + small(p, c) + also(1, c) + aligned(c);
}
EOC
cat >pass.cc <<'EOC'
#include <memory>
#include <string>
#include <utility>
#define KEPT __attribute__((noinline))
struct NT { long v; NT(long a) : v(a) {} NT(const NT &o) : v(o.v) {} ~NT() {} };
struct Plain { long v; Plain() = default; Plain(const Plain &) = default; ~Plain() = default; };
struct Moved { long v; Moved(long a) : v(a) {} Moved(Moved &&) = default; };
struct Fixed { long v; Fixed(long a) : v(a) {} Fixed(const Fixed &) = delete; };
struct Holder { NT n; };
struct Virtual { long v; virtual long get() { return v; } };
struct Tag {};
struct Base { long b; };
struct Left : virtual Base { Left(int a, int c) { b = a + c; } };
KEPT NT made(long a) { return NT(a); }
KEPT Fixed fixed(long a) { return Fixed(a); }
KEPT Moved moved(long a) { return Moved(a); }
KEPT Plain plain(long a) { Plain p; p.v = a; return p; }
KEPT std::unique_ptr<int> unique(int a) { return std::unique_ptr<int>(new int(a)); }
KEPT std::pair<int, int> both(int a) { return {a, 2}; }
KEPT long second(NT n, long b) { return n.v + b; }
KEPT long holds(Holder h, long b) { return h.n.v + b; }
KEPT long virtuals(Virtual w, long b) { return w.v + b; }
KEPT long only(NT n) { return n.v; }
KEPT double tagged(Tag t, double d) { return d; }
KEPT int text(std::string s, int n) { return s.size() + n; }
int main(int c, char **)
{
	NT n(c);
	Virtual w;
	Left l(1, c);
	return made(c).v + fixed(c).v + moved(c).v + plain(c).v + *unique(c) + both(c).first + second(n, c) + holds({n}, c) +
	       virtuals(w, c) + only(n) + tagged({}, c) + text("x", c) + l.b;
}
EOC
cat >pass.rs <<'EOC'
use std::hint::black_box as kept;
#[derive(Clone, Copy)]
pub struct U2 { a: u32, b: u32 }
#[derive(Clone, Copy)]
pub struct S4 { a: [u64; 4] }
#[derive(Clone, Copy)]
pub struct Three { a: u16, b: u16, c: u16 }
#[inline(never)]
pub fn pair(n: u32) -> (u32, u32) { (kept(n), 2) }
#[inline(never)]
pub fn taking(u: U2, n: u32) -> u32 { kept(u.a) + u.b + n }
#[inline(never)]
pub fn bigs(s: S4, c: u32) -> u64 { kept(s.a[1]) + c as u64 }
#[inline(never)]
pub fn array(n: u64) -> [u64; 4] { [kept(n); 4] }
#[inline(never)]
pub fn three(t: Three, n: u32) -> u32 { kept(t.a as u32) + t.b as u32 + t.c as u32 + n }
#[inline(never)]
pub fn vec(v: Vec<u32>) -> usize { kept(&v).len() }
#[inline(never)]
pub fn under(_: u32, n: u32) -> u32 { kept(n) }
fn main() {
    let n = std::env::args().count() as u32;
    let sum = pair(n).1 + taking(U2 { a: 1, b: 2 }, n) + bigs(S4 { a: [1; 4] }, n) as u32 + array(n as u64)[1] as u32;
    println!("{}", sum + three(Three { a: 1, b: 2, c: 3 }, n) + under(1, n) + vec(vec![n]) as u32);
}
EOC
gcc -w -g -O0 -o c pass.c
gcc -w -g -O2 -o optimised pass.c
g++ -std=c++17 -g -O0 -o c++ pass.cc
clang++ -std=c++17 -g -O0 -o clang pass.cc
rustc -g -o rust pass.rs

resolved() { # resolved PROGRAM POINT HANDLER
  "$SPILE" -r "$RELEASE" --resolve -e "probe process(\"./$1\").$2 { $3 }" 2>&1 || true
}
# returns PROGRAM FUNCTION VARIABLES: where these are at its return.
returns() {
  found=$(resolved "$1" "function(\"$2\").return" "println($3)" | sed -n 's/^ *\(\$[^:]*\): .* in \(bits .*\|[^ ]* at the entry\|[^ ]*\)$/\1 \2/p; s/^error.*/error/p; s/^ *\$.* has no value.*/error/p')
  echo "$1 $2:" $found
}
returns c unnamed '$b'
returns c long_double '$a, $b'
returns c complex_double '$a'
returns c complex_long '$a'
returns c quad '$a'
returns c boxed '$a'
returns c vector '$b'
returns c quads '$b, $d'
returns c stacked '$f, $g, $h'
returns c point '$p->y, $k, $return->y'
"$SPILE" -r "$RELEASE" -p3 -e 'probe process("./c").function("long_double").return { println($return) }' 2>&1 |
  sed -n 's/^ *= \(it is returned\)/c $return of long double: \1/p'
for program in c++ clang; do
  returns $program made '$a, $return->v'
  returns $program fixed '$a, $return->v'
  returns $program moved '$a, $return->v'
  returns $program plain '$a, $return->v'
  returns $program unique '$a'
  returns $program both '$a, $return->second'
  returns $program second '$n->v, $b'
  returns $program holds '$h->n->v, $b'
  returns $program virtuals '$w->v, $b'
  returns $program only '$n->v'
  returns $program tagged '$d'
  returns $program text '$n'
  returns $program Left::Left '$a, $c'
done
returns rust pair '$n, $return->__1'
returns rust taking '$u->b, $n'
returns rust bigs '$c'
returns rust array '$n, $return[1]'
returns rust under '$n'
returns rust three '$n'
# Debug information has these nowhere at the entry.
returns rust vec '$v->len'
returns clang text '$s->_M_string_length'

# begins NAME PROGRAM POINT VARIABLES: where the probe is, and where these are there.
begins() {
  found=$(resolved "$2" "$3" "println($4)" | sed -n 's/^ *\([^ $]*+0x[0-9a-f]*\) in .*/\1/p; s/^ *\(\$[^:]*\): .* in \(bits .*\|[^ ]*\)$/\1:\2/p')
  echo "$1" $found
}
begins optimised optimised 'function("f")' '$k'
begins optimised optimised 'function("small")' '$p->y, $k'
begins unoptimised c 'function("plain")' '$a, $b'
begins unoptimised c 'function("aligned")' '$a'
begins unoptimised c++ 'function("only")' '$n->v'
begins unoptimised clang 'function("only")' '$n->v'
begins unoptimised clang 'function("text")' '$s->_M_string_length'
begins unoptimised rust 'function("vec")' '$v->len'
begins alias c 'function("also")' '$a, $b'
begins number c "function(0x$(nm c | sed -n 's/ T plain$//p'))" '$a, $b'
