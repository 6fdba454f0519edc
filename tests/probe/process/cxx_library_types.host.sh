# Shows: what a std::unique_ptr points to, by the member that is nearest of several in base classes; a reference to an array is indexed as
# the array is; a static variable of an inlined function is there in each copy; members that are inherited are named in messages.
# stdout: ^held 7, numbers 5 6 -7$
# stdout: ^letter 121$
# stdout: members: .*_M_head_impl
# limit: 120

cat >types.cc <<'EOC'
#include <memory>
#define KEPT __attribute__((noinline, noclone))
struct Held { int id; };
KEPT int held(const std::unique_ptr<Held> &p, const int (&numbers)[3])
{
	asm volatile("" : : "r"(&p), "r"(numbers));
	return p->id + numbers[1];
}
inline int letter(int n)
{
	static constexpr char letters[] = "xyz";
	int found = letters[n];

	asm volatile(".globl here\nhere: nop" : : "r"(found));
	return found;
}
int main(int argc, char **)
{
	auto p = std::make_unique<Held>(Held{ argc + 6 });
	int numbers[3] = { 5, 6, -7 };

	return held(p, numbers) + letter(argc) == 0;
}
EOC
g++ -g -O2 -o types types.cc
here="0x$(nm types | awk '$3 == "here" { print $1 }')"
cat >types.stp <<EOC
probe process("$PWD/types").function("held") {
  printf("held %d, numbers %d %d %d\n", \$p->_M_t->_M_t->_M_head_impl->id, \$numbers[0], \$numbers[1], \$numbers[2])
}
probe process("$PWD/types").statement($here) { printf("letter %d\n", \$letters[1]) }
EOC
"$SPILE" -r "$RELEASE" --guest -c "$PWD/types" types.stp
"$SPILE" -r "$RELEASE" -p2 -e "probe process(\"$PWD/types\").function(\"held\") { println(\$p->_M_t->_M_t) }" 2>&1 | grep members:
