# Shows: programs and libraries without section headers, as strip --strip-section-headers leaves them, also of 32 bits: their functions, libraries
# and build-id are found by the segments.
# stdout: ^wide: enter main returning same$
# stdout: ^wide: its library: helper_one helper_two$
# stdout: ^wide: versions: 1$
# stdout: ^narrow: enter main returning same$
# stdout: ^narrow: its library: helper_one helper_two$
# stdout: ^static: 0x[0-9a-f]+$

cat >helper.c <<'EOS'
int helper_one(int a) { return a + 1; }
int helper_two(int a) { return a + 2; }
EOS
echo 'V1 { global: helper_one; helper_two; local: *; };' >helper.map
cat >program.c <<'EOS'
int helper_one(int), helper_two(int);
int enter(int a) { return helper_one(a); }
int returning(int a) { return helper_two(a) * 3; }
int main(int count, char **v) { return enter(count) + returning(count); }
EOS
# without FILE: the fields of the ELF header that tell where the section headers are, how many, and which has their names
without() {
  if [ "$2" = 32 ]; then offset=32 last=46 bytes=4; else offset=40 last=58 bytes=8; fi
  start=$(od -An -td4 -j $offset -N 4 "$1" | tr -d ' ')
  dd if=/dev/zero of="$1" bs=1 seek=$offset count=$bytes conv=notrunc status=none
  dd if=/dev/zero of="$1" bs=1 seek=$last count=6 conv=notrunc status=none
  truncate -s "$start" "$1"
}
build_id() { "$SPILE" -r "$RELEASE" -p3 -e "global n probe process(\"$1\").function(\"enter\") { n++ }" | grep -m 1 -o 'build_id = .*'; }
names() { "$SPILE" -r "$RELEASE" -l "$1" | grep -oE '"[a-z_]*"\)$' | tr -d '")' | grep -vE '^_' | sort | xargs; }
try() { # try NAME BITS OPTIONS
  mkdir "$1"
  gcc -m$2 -O1 -nostdlib -shared -fPIC -o "$1/libhelper.so.1" -Wl,-soname,libhelper.so.1,--version-script=helper.map helper.c
  gcc -m$2 -O1 $3 -o "$1/program" program.c "$1/libhelper.so.1" -Wl,-rpath,'$ORIGIN'
  before=$(build_id "./$1/program")
  without "$1/program" $2
  without "$1/libhelper.so.1" $2
  [ -z "$(readelf -SW "$1/program" 2>/dev/null | grep dynsym)" ] || echo "$1: there are sections"
  [ "$before" = "$(build_id "./$1/program")" ] && [ -n "$before" ] && same=same || same="$before"
  echo "$1: $(names "process(\"./$1/program\").function(\"*\")") $same"
  echo "$1: its library: $(names "process(\"./$1/program\").library(\"libhelper.so.1\").function(\"*\")")"
  [ $2 = 32 ] || echo "$1: versions: $("$SPILE" -r "$RELEASE" -l "process(\"./$1/libhelper.so.1\").function(\"helper_one@@V1\")" | grep -c helper_one)"
}
try wide 64 '-rdynamic'
try narrow 32 '-nostdlib -pie -fPIC -rdynamic -Wl,-e,main'
# A program of which nothing is known but its code.
gcc -O1 -static -nostdlib -o static -Wl,-e,enter helper.c program.c
entry=$(readelf -hW static | sed -n 's/.*Entry point address: *//p')
without static 64
echo "static: $("$SPILE" -r "$RELEASE" -g -l "process(\"./static\").statement($entry).absolute" | grep -o '0x[0-9a-f]*' | head -n 1)"
