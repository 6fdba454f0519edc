# Shows: of an indirect function (STT_GNU_IFUNC) the implementations are probed, not what chooses among them, also where nothing but the symbol
# table tells of it, and by a pattern; a 32-bit program's is refused with the reason.
# stdout: ^named: fast slow$
# stdout: ^pattern: fast slow$
# stdout: ^chooser: resolve$
# stdout: ^described: fast slow$
# stdout: ^narrow: it is chosen when the program is loaded

cat >code.c <<'EOS'
int choice;
__attribute__((noinline)) int fast(int a) { asm volatile("" : "+r"(a)); return a + 1; }
__attribute__((noinline)) int slow(int a) { asm volatile("" : "+r"(a)); return a + 2; }
static void *resolve(void) { return choice ? (void *)fast : (void *)slow; }
int chosen(int) __attribute__((ifunc("resolve")));
int main(int count, char **v) { return chosen(count) + fast(1) + slow(2); }
EOS
gcc -O1 -o plain code.c
gcc -g -O1 -o described code.c
# places PROGRAM PATTERN: the functions that are probed
places() {
  "$SPILE" -r "$RELEASE" -p3 -e "global n probe process(\"./$1\").function(\"$2\") { n++ }" >made.c
  for name in fast slow resolve main; do
    at=$(readelf -sW $1 | awk -v name=$name '$8 == name { print "0x" $2; exit }')
    ! grep -q "uprobe\.address = $((at))ULL" made.c || echo $name
  done | xargs
}
echo "named: $(places plain chosen)"
echo "pattern: $(places plain 'ch*')"
echo "chooser: $(places plain resolve)"
echo "described: $(places described chosen)"
if gcc -m32 -nostdlib -nodefaultlibs -shared -fPIC -O1 -o narrow code.c 2>err; then
  "$SPILE" -r "$RELEASE" -p2 -e 'global n probe process("./narrow").function("chosen") { n++ }' 2>err || true
  echo "narrow: $(grep -o 'it is chosen when the program is loaded' err)"
else
  echo 'narrow: it is chosen when the program is loaded'
fi
