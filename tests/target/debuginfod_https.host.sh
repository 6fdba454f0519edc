# Shows: debug information is fetched over https too, but not from a server with an untrusted certificate.
# limit: 120
# stdout: ^refused 1: .*certificate
# stdout: ^kernel\.function\("kept@a\.c:2"\) \$n:int$
# stdout: ^again kernel\.function\("kept@a\.c:2"\) \$n:int$

mkdir -p one.root/boot one.root/lib/modules/one
cat >a.c <<'EOT'
volatile int sink;
__attribute__((noinline)) int kept(int n) { sink = n; return n + 1; }
int register_kprobe(int n) { return kept(n) + 1; }
EOT
gcc -g -O2 -static -nostdlib -nostartfiles -fno-pie -no-pie -Wl,-e,register_kprobe,--build-id -o vmlinux a.c
objcopy --strip-debug vmlinux one.root/boot/vmlinuz-one
id=$(readelf -n vmlinux | sed -n 's/ *Build ID: //p')
mkdir -p "served/buildid/$id"
cp vmlinux "served/buildid/$id/debuginfo"
openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out certificate.pem -days 2 -subj /CN=localhost \
	-addext subjectAltName=DNS:localhost >/dev/null 2>&1
port=$((20000 + $$ % 20000))
(cd served && exec openssl s_server -quiet -WWW -accept "127.0.0.1:$port" -cert ../certificate.pem -key ../key.pem >../server.log 2>&1) &
server=$!
trap 'kill $server 2>/dev/null || true' EXIT
sleep 1
export DEBUGINFOD_URLS="https://localhost:$port" SPILE_CACHE_DIR="$PWD/cache"
status=0
"$SPILE" -r one --sysroot one.root -L 'kernel.function("kept")' 2>refused.err || status=$?
echo "refused $status: $(grep -i certificate refused.err | head -n 1)"
CURL_CA_BUNDLE=$PWD/certificate.pem "$SPILE" -r one --sysroot one.root -L 'kernel.function("kept")'
kill $server
# From the cache: there is no server.
echo "again $("$SPILE" -r one --sysroot one.root -L 'kernel.function("kept")')"
