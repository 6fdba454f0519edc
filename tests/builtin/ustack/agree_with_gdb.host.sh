# Shows: user stacks of Debian's own programs, which have no frame pointers, are those that gdb finds: at each call of malloc()
# spile's stack is one of gdb's. Files are mapped elsewhere in each run, so frames are compared by file, place in the
# page, and distance from the file's outermost frame. Other variables of the environment make bash call malloc() elsewhere.
# stdout: ^bash: (9[0-9]|100) of 100 agree, of up to 1[2-9] frames$
# stdout: ^openssl: 100 of 100 agree, of up to (1[2-9]|[2-9][0-9]) frames$
# stdout: ^perl: 100 of 100 agree, of up to (1[2-9]|[2-9][0-9]) frames$
# limit: 180
# Programs and libraries are those of this machine.
# guest: 6.1

# The commands.
cat >bash.sh <<'EOF'
bash --norc -c 'depth() { [ $1 = 0 ] && return; for word in a b; do case $word in a) depth $(($1 - 1)); esac; done; }; depth 4; echo ${BASH%/*}'
EOF
echo "openssl list -digest-commands" >openssl.sh
cat >perl.sh <<'EOF'
perl -e 'sub depth { my $n = shift; return $n ? eval { depth($n - 1) } . "x" : join ",", sort { length $a <=> length $b } @_ } $_ = depth(5); s/(x+)/uc $1/e'
EOF
cat >calls.stp <<'EOF'
global calls
probe process("/lib/x86_64-linux-gnu/libc.so.6").function("malloc") {
  # That is the command's process before exec.
  if (execname() == "spilerun" || calls++ >= 100)
    next
  println("call")
  print_ubacktrace()
}
EOF
# Emulated, the loader takes some seconds for the tables of a large program, on a busy machine more than a task may wait. Those of
# programs that the command names (scene.sh) are made before.
"$SPILE" -r "$RELEASE" -p4 -m calls -DMAXSTACKWAIT=10000 calls.stp >/dev/null || exit 1

# Both ways to get stacks write a line "call", and a line "ADDRESS FILE" for each frame, innermost first.
cat >gdb.py <<'EOF'
import gdb, os

def read_mappings():
    ranges = []
    for line in gdb.execute("info proc mappings", to_string=True).splitlines():
        words = line.split()
        if len(words) > 5 and words[-1].startswith("/"):
            ranges.append((int(words[0], 16), int(words[1], 16), words[-1]))
    return ranges

def file_of(address):
    global mappings
    for attempt in range(2):
        for first, end, name in mappings:
            if first <= address < end:
                return name
        mappings = read_mappings()
    return "-"

for setting in ("pagination off", "debuginfod enabled off", "confirm off", "backtrace past-main on", "backtrace past-entry on",
                "stop-on-solib-events 1"):
    gdb.execute("set " + setting)
gdb.execute("run >/dev/null")
while "libc.so.6" not in gdb.execute("info sharedlibrary", to_string=True):
    gdb.execute("continue")
gdb.execute("set stop-on-solib-events 0")
mappings = read_mappings()
libc = min(first for first, end, name in mappings if name.endswith("/libc.so.6"))
gdb.execute("break *%d" % (libc + int(os.environ["MALLOC"], 16)))
with open(os.environ["CALLS"], "w") as calls:
    gdb.execute("continue", to_string=True)
    while gdb.selected_inferior().pid:
        print("call", file=calls)
        frame = gdb.newest_frame()
        while frame is not None:
            if frame.type() != gdb.INLINE_FRAME:
                print(hex(frame.pc()), file_of(frame.pc()), file=calls)
            frame = frame.older()
        gdb.execute("continue", to_string=True)
EOF
cat >compare.py <<'EOF'
def stacks(path):
    found = []
    with open(path) as lines:
        for line in lines:
            if line == "call\n":
                found.append([])
            else:
                address, name = line.split()
                found[-1].append((int(address, 16), name.split("/")[-1]))
    return found

def comparable(frames):
    outermost = {name: address for address, name in frames}
    return tuple((name, address % 4096, outermost[name] - address) for address, name in frames)

for program in ("bash", "openssl", "perl"):
    known = set(comparable(frames) for frames in stacks("gdb." + program))
    found = stacks("spile." + program)
    agree = [frames for frames in found if comparable(frames) in known]
    print("%s: %d of %d agree, of up to %d frames" % (program, len(agree), len(found), max(map(len, found), default=0)))
    for frames in [frames for frames in found if frames not in agree][:2]:
        print("  differs:", [(hex(address), name) for address, name in frames])
EOF
export LC_ALL=C MALLOC=$(readelf -W --dyn-syms /lib/x86_64-linux-gnu/libc.so.6 | awk '$8 ~ /^malloc@@/ { print $2 }')
programs=
for name in bash openssl perl; do
	export CALLS=gdb.$name
	# An error in the script does not make gdb fail.
	eval "gdb -nx -q -batch -x gdb.py --args $(cat $name.sh)" >said 2>&1 && [ -s gdb.$name ] || { cat said; exit 1; }
	sed -i '1s/^/exec /' $name.sh
	programs="$programs --program $(command -v $name) --file $name.sh"
done
cat >scene.sh <<'EOF'
cd /root
for name in bash openssl perl; do
	echo "program $name"
	LC_ALL=C spilerun calls.ko -c "sh $name.sh $name >/dev/null"
done
EOF
"$XTASK" guest --kernel "$RELEASE" --file calls.ko $programs "$(cat scene.sh)" >out || { cat out; exit 1; }
# " 0x7f.. : malloc+0x0/0x317 [/usr/lib/x86_64-linux-gnu/libc.so.6]", with "+0x98930" after the file if there is no name.
awk '/^program / { file = "spile." $2; next } /^call$/ { print >file } / : / { name = $NF; gsub(/\[|\]|\+0x.*/, "", name); print $1, name >file }' out
gdb -nx -q -batch -x compare.py
