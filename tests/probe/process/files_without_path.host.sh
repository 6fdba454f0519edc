# Shows: a program that never had a file name (memfd), one whose file was deleted, and one that has another file than we have at
# its path (another root, as in a container) are found by their PID, and the last one also by /proc/PID/root, with debug
# information that is installed in that root.
# stdout: ^memfd: 1 text$
# stdout: ^deleted: 1 text$
# stdout: ^other root: 2 text$
# stdout: ^other root, by path: 2, returns 3$
# stdout: ^4 lines$
# absent: ERROR|WARNING
# limit: 120

cat >prog.c <<'EOF'
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
__attribute__((noinline)) int work(int n, const char *text) { __asm__ volatile("" : : "r"(text) : "memory"); return n + 1; }
/* Works when it gets SIGUSR1; with the argument "memfd" as a copy of its own without a name. */
int main(int argc, char **argv)
{
	char bytes[65536], *arguments[] = { argv[0], "works", NULL };
	int caught, copy;
	size_t length;
	sigset_t set;
	FILE *own;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (argc > 1 && !strcmp(argv[1], "memfd")) {
		copy = memfd_create("unnamed", MFD_CLOEXEC);
		own = fopen("/proc/self/exe", "r");
		while ((length = fread(bytes, 1, sizeof(bytes), own)) > 0)
			if (write(copy, bytes, length) < 0)
				return 2;
		fexecve(copy, arguments, environ);
		return 2;
	}
	sigwait(&set, &caught);
	return work(NUMBER, "text") == 0;
}
EOF
gcc -g -O2 -DNUMBER=1 -Wl,--build-id=sha1 -static -o prog prog.c
gcc -g -O2 -DNUMBER=2 -Wl,--build-id=sha1 -static -o other prog.c
objcopy --only-keep-debug other other.debug
strip other
# The processes, with the same PIDs where the script is compiled and where it runs.
cat >starts.sh <<'EOF'
place=/tmp/files_without_path
mkdir -p $place/root$place
cp prog $place/prog && cp prog $place/gone && cp other $place/root$place/prog
build_id=$(readelf -n other.debug 2>/dev/null | sed -n 's/.*Build ID: //p')
if [ "$build_id" ]; then
	mkdir -p $place/root/usr/lib/.build-id/${build_id%${build_id#??}} $place/root/usr/lib/debug
	cp other.debug $place/root/usr/lib/.build-id/${build_id%${build_id#??}}/${build_id#??}.debug
	ln -s /usr/lib/.build-id $place/root/usr/lib/debug/.build-id
fi
# start PID COMMAND...
start() {
	echo $(($1 - 1)) >/proc/sys/kernel/ns_last_pid
	wanted=$1
	shift
	"$@" &
	[ $! = $wanted ] || { echo "PID $! instead of $wanted"; exit 1; }
}
# runs PID FILE: waits until it does.
runs() {
	until readlink /proc/$1/exe | grep -q "$2"; do sleep 0.1; done
}
start 30000 $place/prog memfd
start 30100 $place/gone
start 30200 chroot $place/root $place/prog
runs 30000 memfd
runs 30100 gone
runs 30200 $place/root
rm $place/gone
EOF
cat >places.stp <<'EOF'
probe process(30000).function("work") { printf("memfd: %d %s\n", $n, user_string($text)) }
probe process(30100).function("work") { printf("deleted: %d %s\n", $n, user_string($text)) }
probe process(30200).function("work") { printf("other root: %d %s\n", $n, user_string($text)) }
probe process("/proc/30200/root/tmp/files_without_path/prog").function("work").return {
  printf("other root, by path: %d, returns %d\n", @entry($n), $return)
}
EOF
cat >compile.sh <<'EOF'
. ./starts.sh
"$SPILE" -r "$RELEASE" -p4 -m places places.stp
status=$?
kill -KILL 30000 30100 30200
exit $status
EOF
unshare --pid --fork --mount-proc sh compile.sh >/dev/null
compiled=$?
rm -r /tmp/files_without_path
[ $compiled = 0 ] || exit 1
cat >scene.sh <<'EOF'
cd /root && . ./starts.sh
spilerun places.ko >out 2>&1 &
loader=$!
until spilerun status places 2>/dev/null | grep -q '4 of 4 probes armed' || ! kill -0 $loader; do sleep 0.1; done
for process in 30000 30100 30200; do
	kill -USR1 $process
	wait $process
done
kill -INT $loader
wait $loader
cat out
echo "$(grep -c : out) lines"
EOF
"$XTASK" guest --kernel "$RELEASE" --file places.ko --file prog --file other --file starts.sh "$(cat scene.sh)"
