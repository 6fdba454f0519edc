# Shows: a variable, parameter or choice whose values are pointers to different types has no type, also where these have one name: in two
# files of a program, in two programs, and in a program and the kernel.
# stdout: ^parameter: E0156 1$
# stdout: ^through another: E0156 1$
# stdout: ^global: E0156 1$
# stdout: ^two programs: E0156 1$
# stdout: ^with the kernel: E0156 1$
# stdout: ^choice: E0156 1$
# stdout: ^one type: 0$
# stdout: ^qualified: 0$

try() {
	name=$1
	shift
	"$SPILE" -r "$RELEASE" -p2 -e "$*" >out 2>&1 || true
	count=$(grep -c 'different types' out || true)
	echo "$name: $(sed -n 's/.*\[\(E[0-9]*\)\].*/\1 /p' out | head -1 | tr -d '\n')$count"
}
cat >own.c <<'EOS'
struct file { long pad; void *f_inode; };
struct pair { long first; };
__attribute__((noipa)) void opened(struct file *file, struct pair *pair) { }
__attribute__((noipa)) void seen(const struct pair *pair) { }
int main(void) { opened(0, 0); seen(0); return 0; }
EOS
gcc -g -O2 -Wl,--build-id=sha1 -o own own.c
units="process(\"$ROOT/target/fixtures/programs/units\")"
visit="$units.function(\"visit\")"
other="$units.function(\"visit_other\")"
try parameter "function value(n) { return n->value } probe $visit { println(value(\$node)) } probe $other { println(value(\$node)) }"
try "through another" "global kept, g probe $visit { g = \$node } probe $other { g = \$node } probe end { kept = g; println(kept->value) } probe $visit { kept = \$node }"
try global "global g probe $visit { g[1] = \$node } probe $other { g[1] = \$node; println(g[1]->value) }"
try "two programs" "function f(p) { return p->first } probe $visit { println(f(\$pair)) } probe process(\"$PWD/own\").function(\"opened\") { println(f(\$pair)) }"
try "with the kernel" "function f(p) { return p->f_inode } probe kernel.function(\"vfs_read\") { println(f(\$file)) } probe process(\"$PWD/own\").function(\"opened\") { println(f(\$file)) }"
try choice "probe $visit { p = pid() ? \$node : \$pair; println(p->value) }"
try "one type" "function f(p) { return p->first } probe $visit { p = pid() ? \$pair : \$pair; println(f(p)) } probe $other { println(f(\$pair)) }"
own="process(\"$PWD/own\")"
try qualified "function f(p) { return p->first } probe $own.function(\"opened\") { println(f(\$pair)) } probe $own.function(\"seen\") { println(f(\$pair)) }"
