# Shows: a member of a class that the program's debug information only declares: the message says so, by a typedef and by a pointer.
# stdout: ^by a typedef: error\[E0302\]: `[a-z ]*basic_string<.*` is only declared, nowhere defined, in this object \(clang describes such classes with -fstandalone-debug\)$
# stdout: ^by a reference: error\[E0302\]: `[a-z ]*basic_string<.*` is only declared, nowhere defined

cat >held.cc <<'EOC'
#include <string>
struct Held { std::string name; int number; };
__attribute__((noinline)) int seen(Held *held, const std::string &key) { asm volatile("" : : "r"(held), "r"(&key)); return held->number; }
int main(int count, char **v) { Held held; held.number = count; return seen(&held, "k"); }
EOC
clang++ -g -O0 -o held held.cc
"$SPILE" -r "$RELEASE" -p2 -e 'probe process("./held").function("seen") { println($held->name->_M_dataplus) }' >err 2>&1 || true
echo "by a typedef: $(grep -m 1 '^error' err)"
"$SPILE" -r "$RELEASE" -p2 -e 'probe process("./held").function("seen") { println($key->_M_dataplus) }' >err 2>&1 || true
echo "by a reference: $(grep -m 1 '^error' err)"
