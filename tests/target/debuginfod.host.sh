# Shows: Debian's debuginfod serves debug information of a kernel and a module that is not installed; it is cached.
# limit: 300
# stdout: ^kernel\.function\("kept@a\.c:3"\) \$box:struct box\* \$n:int$
# stdout: ^kept 1$
# stdout: ^kernel\.function\("kept@a\.c:3"\) \$box:struct box\* \$n:int$
# stdout: ^module\("nfs"\)\.function\("nfs_file_read@fs/nfs/file\.c:[0-9]+"\) \$iocb:struct kiocb\*
# stdout: = asked http://127\.0\.0\.1:[0-9]+: it does not have it$
# stdout: ^refused 1$
# stdout: ^the user's own settings of curl: not read$

mkdir -p served one.root/boot one.root/lib/modules/one
cat >a.c <<'EOF'
struct box { long size; int count; };
volatile int sink;
__attribute__((noinline)) int kept(struct box *box, int n) { sink = n; return box->count + n; }
struct box all;
int register_kprobe(int n) { return kept(&all, n) + 1; }
EOF
gcc -g -O2 -static -nostdlib -nostartfiles -fno-pie -no-pie -Wl,-e,register_kprobe,--build-id -o served/vmlinux a.c
objcopy --strip-debug served/vmlinux one.root/boot/vmlinuz-one
# A release whose modules are installed without their debug information.
mkdir -p two.root
ln -s /lib two.root/lib
cp "/usr/lib/debug/lib/modules/$RELEASE/kernel/fs/nfs/nfs.ko" served/

port=$((20000 + $$ % 20000))
debuginfod -p "$port" -d :memory: -t 0 -F served >server.log 2>&1 &
server=$!
trap 'kill $server 2>/dev/null || true' EXIT
# Would take what curl fetches elsewhere: root may have the home of a user.
mkdir home
echo "output = $PWD/stolen" >home/.curlrc
export CURL_HOME="$PWD/home"
export DEBUGINFOD_URLS="http://127.0.0.1:$port" SPILE_CACHE_DIR="$PWD/cache"
for tenth in $(seq 1 300); do
  ! grep -q 'built-id\|fdcache\|scanned' server.log || [ "$tenth" -lt 20 ] || break
  sleep 0.1
done

"$SPILE" -r one --sysroot one.root -L 'kernel.function("kept")'
echo "kept $(ls cache/debug | wc -l)"
"$SPILE" -r "$RELEASE" --sysroot two.root -L 'module("nfs").function("nfs_file_read")' >module.out 2>module.err || cat module.err
kill $server
wait $server || true
# From the cache: there is no server.
"$SPILE" -r one --sysroot one.root -L 'kernel.function("kept")'
cat module.out

mkdir empty
env -u DEBUGINFOD_URLS debuginfod -p "$port" -d :memory: -t 0 -F empty >other.log 2>&1 &
server=$!
sleep 2
status=0
rm -r cache
"$SPILE" -r one --sysroot one.root -L 'kernel.function("kept")' 2>refused.err || status=$?
grep asked refused.err
echo "refused $status"
[ -e stolen ] || echo "the user's own settings of curl: not read"
