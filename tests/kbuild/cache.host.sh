# Shows: the cache is used, and a damaged cache does no harm.
# stdout: ^first: .*\(runtime: built\)
# stdout: ^again: .*using cached module
# stdout: ^poisoned: .*\(runtime: built
# stdout: ^debug information: 0 and [1-9], code the same$
# stdout: ^option: .*\(runtime: cached; embedded C: cached\)
# stdout: ^disabled: .*without a cache, the runtime is compiled with each script
# stdout: ^damaged: 3 entries made again, module right$
# stdout: ^header changed: .*\(runtime: cached\)
# stdout: ^four at once: 4 modules, runtime built 1 times$
# stdout: ^unusable: works, reports .*is not used: Not a directory
# stdout: ^full: works, reports .*cannot be written .*No space left
# stdout: ^others can write: works, reports .*others can write there
# stdout: ^cleared: .*0 entries, 0 bytes
# limit: 300

export SPILE_CACHE_DIR=$PWD/cache PATH=$COMPILE_ONCE:$PATH
echo 'long long from_header = 1;' >own.h
cat >kept.stp <<EOF
%{
#include "$PWD/own.h"
%}
function get:long () %{ STAP_RETURN(from_header); %}
probe begin { println(get()) exit() }
EOF
build() { "$SPILE" -r "$RELEASE" -g -v -p4 -m kept "$@" kept.stp 2>&1 >/dev/null; }
pass4() { echo "$1: $(grep 'Pass 4\|Pass 2-4')"; }
build | pass4 first
cp kept.ko right.ko
build | pass4 again
build --poison-cache --debug | pass4 poisoned
# `code`: the loaded code, without the parts that depend on the module's build-id.
code() { for section in .kprobes.text .text .data .rodata; do objcopy -O binary --only-section=$section "$1" /dev/stdout; done | sha256sum; }
debug() { readelf -SW "$1" | grep -c '\.debug_info'; }
echo "debug information: $(debug right.ko) and $(debug kept.ko), code $([ "$(code right.ko)" = "$(code kept.ko)" ] && echo the same)"
build -DMAXERRORS=7 | pass4 option
build --disable-cache | pass4 disabled

for entry in cache/*/*; do
	# Damage in the middle, inside an object.
	printf 'damage' | dd of="$entry" bs=1 seek=$(($(wc -c <"$entry") / 2)) conv=notrunc 2>/dev/null
done
rm kept.ko
count=$(build | grep -c 'was damaged, and is made again')
echo "damaged: $count entries made again, module $(cmp kept.ko right.ko && echo right)"

sleep 0.1
echo 'long long from_header = 2;' >own.h
build | pass4 'header changed'

export SPILE_CACHE_DIR=$PWD/cache4
echo 'probe begin { exit() }' >four.stp
for one in 1 2 3 4; do
	mkdir "four$one"
	(cd "four$one" && exec "$SPILE" -r "$RELEASE" -v -p4 -m "four" ../four.stp >/dev/null 2>../four$one.err) &
done
wait
for one in 2 3 4; do cmp four1/four.ko four$one/four.ko; done
echo "four at once: $(ls four?/four.ko | wc -l) modules, runtime built $(cat four?.err | grep -c 'runtime: built') times"

reported() { build | sed -n "s/^NOTE: \(.*$2.*\)/$1: works, reports \1/p" | head -1; test -s kept.ko && rm kept.ko; }
touch file
SPILE_CACHE_DIR= XDG_CACHE_HOME= HOME=$PWD/file reported unusable 'is not used'
mkdir full others
# In a separate namespace, so that nothing stays mounted.
cat >full.sh <<'EOF'
mount -t tmpfs -o size=64k,mode=700 tmpfs full && SPILE_CACHE_DIR=$PWD/full "$SPILE" -r "$RELEASE" -g -v -p4 -m kept kept.stp 2>&1 >/dev/null
EOF
unshare -m sh full.sh | sed -n 's/^NOTE: \(.*cannot be written.*\)/full: works, reports \1/p' | head -1
chmod 777 others
SPILE_CACHE_DIR=$PWD/others reported 'others can write' 'others can'
"$SPILE" --cache clear >/dev/null
echo "cleared: $("$SPILE" --cache size)"
