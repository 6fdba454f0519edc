# Shows: functions and data of C++ and Rust by names as people write them: of a trait by the type that implements it, data with its scope,
# variables as linkers know them. The reason why there is no import stub.
# stdout: ^trait process\("\S*/dog"\)\.function\("speak@\S*dog\.rs:\d+"\)$
# stdout: ^trait's process\("\S*/dog"\)\.function\("speak@\S*dog\.rs:\d+"\)$
# stdout: ^other error\[E0204\]
# stdout: ^data process\("\S*/scoped"\)\.data\("ns::Base::counter"\)\.write
# stdout: ^linked .*@var\("_ZN2ns4Base7counterE"\): int in
# stdout: ^library process\("\S*/scoped"\)\.function\("vector@
# stdout: ^stub .*calls it through the global offset table
# limit: 60

cat >dog.rs <<'EOC'
pub trait Speak { fn speak(&self) -> u32; }
pub struct Dog { age: u32 }
pub struct Cat { age: u32 }
impl Speak for Dog {
    #[inline(never)]
    fn speak(&self) -> u32 { self.age + 1 }
}
impl Cat {
    #[inline(never)]
    fn purr(&self) -> u32 { self.age + 2 }
}
fn main() { println!("{} {}", Dog { age: 3 }.speak(), Cat { age: 4 }.purr()); }
EOC
cat >scoped.cc <<'EOC'
#include <vector>
namespace ns { struct Base { static int counter; }; int Base::counter = 4; }
__attribute__((noinline)) int uses(int a) { return a + ns::Base::counter; }
int main(int c, char **) { std::vector<int> many; many.push_back(c); ns::Base::counter += c; return uses(many[0]); }
EOC
rustc -g -o dog dog.rs
g++ -g -O0 -o scoped scoped.cc
echo 'int puts(const char *); int main(void) { return puts(""); }' >unstubbed.c
gcc -O1 -fno-plt -o unstubbed unstubbed.c
list() { "$SPILE" -r "$RELEASE" -l "$1" 2>&1 || true; }
list 'process("./dog").function("Dog::speak")' | sed 's/^/trait /'
list 'process("./dog").function("Speak::speak")' | sed "s/^/trait's /"
list 'process("./dog").function("Cat::speak")' | sed 's/^/other /'
list 'process("./scoped").data("ns::Base::counter").write' | sed 's/^/data /'
"$SPILE" -r "$RELEASE" --resolve -e 'probe process("./scoped").function("uses") { println(@var("_ZN2ns4Base7counterE")) }' 2>&1 | sed 's/^/linked /'
list 'process("./scoped").function("std::vector::vector")' | sed 's/^/library /'
list 'process("./unstubbed").plt("puts")' | sed 's/^/stub /'
