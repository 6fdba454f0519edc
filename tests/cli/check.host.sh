# Shows: --check compares each probe point and variable between two kernels, which are built here from a few functions; for
# structs that are read as a whole, their members.
# stdout: ^t\.stp:1:7 probe same$
# stdout: ^t\.stp:1:45 variable same$
# stdout: ^t\.stp:2:7 probe moved -> b\.c:1$
# stdout: ^t\.stp:3:7 probe renamed -> make_it_noprof$
# stdout: ^t\.stp:4:7 probe inlined$
# stdout: ^t\.stp:5:7 probe gone$
# stdout: ^t\.stp:6:[0-9]+ variable type_changed -> long int$
# stdout: ^t\.stp:7:[0-9]+ variable renamed -> __size$
# stdout: ^t\.stp:8:[0-9]+ variable renamed -> \$amount$
# stdout: ^t\.stp:9:7 probe moved -> a\.c:13$
# stdout: ^t\.stp:11:[0-9]+ variable changed$
# stdout: ^t\.stp:12:[0-9]+ variable same$
# stdout: ^status 1$
# stdout: size 16 -> 24: \+flags$
# stdout: inner: size 8 -> 16
# stdout: 2 same, 1 gone: the script works there as on the first$
# stdout: ^works 0$
# stdout: ^fewer 2$
# stdout: not known without -c or -x
# stdout: not known +needs -c or -x

kernel() { # kernel NAME: links NAME/*.c to a vmlinux of its own system
  mkdir -p "$1.root/usr/lib/debug/boot"
  (cd "$1" && gcc -g -O2 -static -nostdlib -nostartfiles -fno-pie -no-pie -Wl,-e,register_kprobe,--build-id \
    -o "../$1.root/usr/lib/debug/boot/vmlinux-$1" *.c)
  mkdir -p "$1.root/lib/modules/$1"
}

mkdir -p one two
cat >one/a.c <<'EOF'
struct box { long size; int count; };
volatile int sink;
__attribute__((noinline)) int kept(struct box *box, int n) { sink = n; return box->count + n; }
__attribute__((noinline)) void moved(int n) { sink = n; }
__attribute__((noinline)) long make_it(struct box *box, long flags) { sink = flags; return box->size; }
__attribute__((noinline)) int folded(int n) { sink = n; return n * 3; }
__attribute__((noinline)) int leaving(struct box *box) { sink = 5; return box->count; }
__attribute__((noinline)) void typed(int wide) { sink = wide; }
__attribute__((noinline)) long named(struct box *box, long n) { sink = n; return box->size; }
__attribute__((noinline)) int lines(int n)
{
	sink = n;
	sink = n + 1;
	return n;
}
struct box all;
int register_kprobe(int n)
{
	moved(n); typed(n);
	return kept(&all, n) + make_it(&all, n) + folded(n) + leaving(&all) + named(&all, n) + lines(n);
}
EOF
cat >two/a.c <<'EOF'
struct box { long __size; int count; };
volatile int sink;
void moved(int n);
__attribute__((noinline)) int kept(struct box *box, int n) { sink = n; return box->count + n; }
__attribute__((noinline)) long make_it_noprof(struct box *box, long flags) { sink = flags; return box->__size; }
static inline __attribute__((always_inline)) int folded(int n) { sink = n; return n * 3; }
__attribute__((noinline)) void typed(long wide) { sink = wide; }
__attribute__((noinline)) long named(struct box *box, long amount) { sink = amount; return box->__size; }


__attribute__((noinline)) int lines(int n)
{
	sink = n;
	sink = n + 1;
	return n;
}
struct box all;
int register_kprobe(int n)
{
	moved(n); typed(n);
	return kept(&all, n) + make_it_noprof(&all, n) + folded(n) + named(&all, n) + lines(n);
}
EOF
echo 'extern volatile int sink; __attribute__((noinline)) void moved(int n) { sink = n; }' >two/b.c
for which in one two; do
  [ $which = one ] && more= inner=int || more='int flags;' inner=long
  cat >$which/c.c <<EOF
struct whole { int first; long second; $more };
struct inner { $inner first, second; };
struct outer { struct inner inner; };
extern volatile int sink;
void reads(struct whole *w, struct outer *o) { sink = w->first + o->inner.first; }
EOF
done
kernel one
kernel two

cat >t.stp <<'EOF'
probe kernel.function("kept") { println($n, $box->count) }
probe kernel.function("moved") { }
probe kernel.function("make_it") { }
probe kernel.function("folded") { }
probe kernel.function("leaving") { }
probe kernel.function("typed") { println($wide) }
probe kernel.function("named") { println($box->size) }
probe kernel.function("named") { println($n) }
probe kernel.statement("lines@a.c:12") { }
probe kernel.function("leaving") ? { }
probe kernel.function("reads") { println($w$) }
probe kernel.function("reads") { println($w->first) }
EOF
status=0
"$SPILE" --check=json t.stp --kernel "$PWD/one.root" --kernel "$PWD/two.root" >answer.json || status=$?
# One line of text per item.
tr '{' '\n' <answer.json | sed -n '
  s/.*"kind":"\([a-z]*\)".*"place":"\([^"]*\)".*/\2 \1/p
  s/.*"verdict":"\([a-z_]*\)".*"to":"\([^"]*\)".*/=\1 -> \2/p
  t
  s/.*"verdict":"\([a-z_]*\)".*/=\1/p' | paste -d ' ' - - | sed 's/ =/ /'
echo "status $status"

"$SPILE" --check -e 'probe kernel.function("reads") { println($w$$, $o$$) }' --kernel "$PWD/one.root" --kernel "$PWD/two.root" || true

cat >same.stp <<'EOF'
probe kernel.function("kept") { println($n) }
probe kernel.function("leaving") ? { }
EOF
status=0
"$SPILE" --check same.stp --kernel "$PWD/one.root" --kernel "$PWD/two.root" || status=$?
echo "works $status"
status=0
"$SPILE" --check same.stp --kernel "$PWD/one.root" 2>fewer.err || status=$?
echo "fewer $status"

# The program depends on the command, not on the kernel.
echo 'probe process.plt("*") { } probe process.function("main") { }' >program.stp
"$SPILE" --check program.stp --kernel "$PWD/one.root" --kernel "$PWD/two.root" || true
