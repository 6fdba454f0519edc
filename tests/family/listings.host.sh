# Shows: of modules built elsewhere: -d for wildcards, lines and an index; a module compiled from the index without the
# kernel's headers; how a struct that is printed whole has changed; hints of how to build with debug information; --guest of a
# script whose module cannot be loaded there is a failure with the kernel's reason.
# family: yes
# limit: 420
# stdout: ^wildcard 20$
# stdout: ^same from the index: 8[0-9][0-9]$
# stdout: ^ *1000 \* \(2 addresses\)
# stdout: ^one const: 1$
# stdout: ^without headers: from_index\.ko, 410 probes$
# stdout: ^C refused, needs headers$
# stdout: size [0-9]+ -> [0-9]+: \+added$
# stdout: ^check 1$
# stdout: ^hints: -g 1, kernel's package 0$
# stdout: ^separate: beside 1, .debug 1, by path 1, by build-id 1$
# stdout: ^unloadable: 10, reason 1, missing 1, armed 0$
# stdout: ^with its dependency: 0, armed 1$
# stdout: ^of another kernel: rejected 3, loaded 1$
# stdout: ^function of a module: 1, of the kernel: 1, of another module: 1, of an index: 1, of nfs: 1, of none: 0$

all=$(for file in "$FAMILY"/fam*.ko; do printf ' -d %s' "$file"; done)
"$SPILE" -r "$RELEASE" $all -l 'module("fam*").function("fam??_run0")' >out
echo "wildcard $(grep -c run0 out)"

# An index of one module gives the same results as its debug information.
"$SPILE" -r "$RELEASE" -d "$FAMILY/fam19.ko" --export-index kernel.index fam19 >/dev/null
"$SPILE" -r "$RELEASE" -d "$FAMILY/fam19.ko" -L 'module("fam19").function("*")' >full
"$SPILE" --index kernel.index -L 'module("fam19").function("*")' >indexed
cmp full indexed && echo "same from the index: $(wc -l <full)"
"$SPILE" -r "$RELEASE" -d "$FAMILY/fam19.ko" --list-lines 'module("fam19").function("fam19_ways")' 2>/dev/null | grep '^ *1000 '

"$SPILE" -r "$RELEASE" -d "$FAMILY/fam19.ko" -L 'module("fam19").function("fam19_kinds")' >out
grep -q 'const const' out && cat out
echo "one const: $(grep -c '$label:char const\[\|$label:const char\[' out)"

cat >vars.stp <<'EOF'
probe module("fam19").function("fam19_f000*").call { println($$vars$$) }
probe module("fam19").function("fam_mix").inline { println($$vars) }
EOF
# The runtime is compiled on a system with headers; one without them has the index and the cache.
"$SPILE" -r "$RELEASE" -p4 -m first -e 'probe begin { println("x") }' >/dev/null
mkdir bare
"$SPILE" --sysroot bare --index kernel.index -p4 -m from_index vars.stp >made
probes=$("$SPILE" --index kernel.index -p2 vars.stp | grep -c '^module')
echo "without headers: $(cat made), $probes probes"
"$SPILE" --sysroot bare --index kernel.index -g -p4 -e 'probe module("fam19").function("fam19_f0001") { %{ %} }' 2>err || true
grep -q 'headers of kernel .* are not installed' err && echo 'C refused, needs headers'

kernel() { # kernel NAME MODULE: the system of a kernel of one function, with the module
  mkdir -p "$1.root/usr/lib/debug/boot" "$1.root/lib/modules/$1/extra"
  echo 'int register_kprobe(int n) { return n; }' >kernel.c
  gcc -g -O2 -static -nostdlib -nostartfiles -fno-pie -no-pie -Wl,-e,register_kprobe,--build-id \
    -o "$1.root/usr/lib/debug/boot/vmlinux-$1" kernel.c
  cp "$2" "$1.root/lib/modules/$1/extra/"
}
kernel one "$FAMILY/fam19.ko"
kernel two "$FAMILY/changed/fam19.ko"
status=0
"$SPILE" --check -e 'probe module("fam19").function("fam19_f0003") { println($a$$) }' \
  --kernel "$PWD/one.root" --kernel "$PWD/two.root" || status=$?
echo "check $status"

objcopy --strip-debug --remove-section .BTF "$FAMILY/fam18.ko" ./fam18.ko
"$SPILE" -r "$RELEASE" -d ./fam18.ko -l 'module("fam18").function("fam18_f0001")' 2>err || true
count() { tr '\n' ' ' <err | grep -c "$1" || true; }
echo "hints: -g $(count KCFLAGS=-g), kernel's package $(count 'apt-get install')"

# Separate debug information: beside the module, in .debug, in /usr/lib/debug by the module's path and by its build-id.
separate() { # separate NAME DIRECTORY: the stripped module in NAME, its debug information in DIRECTORY
  mkdir -p "$1" "$2"
  objcopy --only-keep-debug "$FAMILY/fam18.ko" "$2/fam18.ko.debug"
  objcopy --strip-debug --remove-section .BTF --add-gnu-debuglink="$2/fam18.ko.debug" "$FAMILY/fam18.ko" "$1/fam18.ko"
  "$SPILE" -r "$RELEASE" -d "$1/fam18.ko" -L 'module("fam18").function("fam18_f0001")' 2>/dev/null | grep -c '[$]a:struct fam_t01[*]' || true
}
elsewhere="/usr/lib/debug$PWD"
beside=$(separate beside beside)
below=$(separate below below/.debug)
by_path=$(separate by_path "$elsewhere/by_path")
rm -r "$elsewhere"
rmdir --parents --ignore-fail-on-non-empty "$(dirname "$elsewhere")"
id=$(readelf -n "$FAMILY/fam18.ko" | sed -n 's/.*Build ID: //p')
named=/usr/lib/debug/.build-id/$(echo "$id" | cut -c 1-2)
mkdir -p "$named"
objcopy --only-keep-debug "$FAMILY/fam18.ko" "$named/$(echo "$id" | cut -c 3-).debug"
by_id=$("$SPILE" -r "$RELEASE" -d ./fam18.ko -L 'module("fam18").function("fam18_f0001")' 2>/dev/null | grep -c '[$]a:struct fam_t01[*]' || true)
rm "$named/$(echo "$id" | cut -c 3-).debug"
rmdir --ignore-fail-on-non-empty "$named"
echo "separate: beside $beside, .debug $below, by path $by_path, by build-id $by_id"

# A module that cannot be loaded without the one that it depends on.
mkdir only
cp "$FAMILY/fam01.ko" only/
"$SPILE" -r "$RELEASE" -d only/fam01.ko -p4 -m ran \
  -e 'probe module("fam01").function("fam01_ran") { println("ran") } probe timer.s(4) { exit() }' >/dev/null
status=0
"$SPILE" --guest -d only/fam01.ko ran.ko 2>err || status=$?
echo "unloadable: $status, reason $(count 'Unknown symbol fam00_ran'), missing $(count 'not there: fam00'), armed $(count 'probes armed')"
status=0
"$SPILE" --guest -d only/fam01.ko -d "$FAMILY/fam00.ko" ran.ko 2>err || status=$?
echo "with its dependency: $status, armed $(count '2 of 2 probes armed, left cleanly')"

# The same module, whose version magic names another release.
mkdir other
sed "s/vermagic=$RELEASE/vermagic=$(echo "$RELEASE" | tr 0-9 9)/" "$FAMILY/fam00.ko" >other/fam00.ko
rejected=0
compile() { "$SPILE" "$@" 2>err >out || true; rejected=$((rejected + $(count "fam00.ko was built for kernel 9.*, not for $RELEASE"))); }
compile -r "$RELEASE" -d other/fam00.ko -L 'module("fam00").function("fam00_ran")'
compile -r "$RELEASE" -d other/fam00.ko -p4 -m of_other -e 'probe module("fam00").function("fam00_ran") { println("ran") }'
compile --guest -d other/fam00.ko of_other.ko
echo "of another kernel: rejected $rejected, loaded $(count '1 of 1 probes armed\|version magic')"

# A function of another object: the message has the correct probe point.
where() { "$SPILE" "$@" 2>err >&2 || true; }
suggested() { count "it is in another object: write $1"; }
where -r "$RELEASE" $all -p2 -e 'probe kernel.function("fam07_f0003").return { }'
suggestions="function of a module: $(suggested 'module("fam07").function("fam07_f0003").return')"
where -r "$RELEASE" $all -p2 -e 'probe module("fam07").function("vfs_read") { }'
suggestions="$suggestions, of the kernel: $(suggested 'kernel.function("vfs_read")')"
where -r "$RELEASE" $all -p2 -e 'probe module("fam07").statement("fam08_f0003@*:1") { }
  probe kprobe.module("fam07").function("fam08_f0003") { }'
suggestions="$suggestions, of another module: $(suggested 'kprobe.module("fam08").function("fam08_f0003")')"
where --index kernel.index -p2 -e 'probe kernel.function("fam19_f0003") { }'
suggestions="$suggestions, of an index: $(suggested 'module("fam19").function("fam19_f0003")')"
where -r "$RELEASE" -p2 -e 'probe kernel.function("nfs_file_read") { }'
suggestions="$suggestions, of nfs: $(suggested 'module("nfs").function("nfs_file_read")')"
where -r "$RELEASE" -p2 -e 'probe kernel.function("no_such_function") { }'
echo "$suggestions, of none: $(suggested '')"
