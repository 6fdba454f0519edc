# Shows: users' processes that withhold memory harm neither the machine nor others' sessions. One calls a probed function with the
# address of a page of its own file system (FUSE), which never comes: the handler has an error, and the session ends at once. One
# holds the lock of its mappings by such a page, for which the kernel's uprobes would wait while no process can fork: its program's
# probes are not armed, with a message, and armed ones are removed in the background when it lets go; meanwhile processes start, and other sessions.
# A program on a file system of the user's has no probes: the kernel would wait for its page while no process can fork.
# limit: 120
# stdout: ^page: 0, caught returned$
# stdout: ^held before: 2 messages of 2 probes, .*not armed: process [0-9]+ has locked its mappings for seconds;
# stdout: ^held before: status 0, another session 0$
# stdout: ^held later: waits 1, another session 0, the log names it 1$
# stdout: ^held later: then 0$
# stdout: ^served: 1 message, .*/served/good is on a file system that a process serves \(FUSE\).*, the program 0, began 1$
# stdout: ^served, and withheld: status 0, 1 message$
# stdout: ^left: 0$

cat >withholds.c <<'END'
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char *page;

__attribute__((noinline, noclone)) void work(const char *text)
{
	asm volatile("" ::"r"(text) : "memory");
}
static void *hold(void *unused)
{
	char byte;

	pread(open("/proc/self/mem", O_RDONLY), &byte, 1, (long)page);
	return NULL;
}
/* withholds page|lock FILE */
int main(int argc, char **argv)
{
	pthread_t thread;

	page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, open(argv[2], O_RDONLY), 0);
	if (page == MAP_FAILED)
		return 2;
	puts("begins");
	fflush(stdout);
	if (!strcmp(argv[1], "lock")) {
		pthread_create(&thread, NULL, hold, NULL);
		pthread_join(thread, NULL);
	} else {
		work(page);
	}
	return 0;
}
END
gcc -g -O2 -Wl,--build-id=sha1 -o withholds withholds.c -lpthread 2>/dev/null
cat >withheld.stp <<END
probe begin { println("ready") }
probe process("$PWD/withholds").function("work") { try { println(user_string(\$text)) } catch { println("caught") } }
probe process("$PWD/withholds").function("work").return { returned++ }
probe end { printf("%s\n", returned ? "returned" : "withheld") }
global returned
END
mkdir served
cp withholds served/good
cat >refused.stp <<END
probe begin { println("ready") }
probe process("$PWD/served/good").function("work"), process("$PWD/served/good").function("main") { println("hit") }
probe process("$PWD/served/good").begin { println("began") }
END
# Whose pages never come, not even the first.
sed 's/good/hangs/g' refused.stp >silent.stp
cp withholds served/hangs
echo 'probe timer.ms(10) { exit() }' >other.stp
for name in withheld refused silent other; do "$SPILE" -r "$RELEASE" -p4 -m $name $name.stp >/dev/null; done
cat >scene.sh <<END
program=$PWD/withholds
place=$PWD
END
cat >>scene.sh <<'END'
cd /root
. ./library.sh
add_users usr:5001
modprobe fuse
echo x >/tmp/file
# serve NAME: a file system of the user's, whose process is $server.
serve() {
	mkdir /tmp/$1
	chown usr /tmp/$1
	served 5001 /tmp/$1 /tmp/file /tmp/file >$1.log 2>&1 &
	server=$!
	wait_for $1.log served
}
# withhold WAY NAME
withhold() {
	su usr -c "exec $program $1 /tmp/$2/hangs" >$2.out 2>&1 &
	wait_for $2.out begins
	sleep 1
}
# release NAME: the server ends.
release() {
	kill -s KILL $server
	umount -l /tmp/$1
}

serve one
start_armed withheld ready
withhold page one
kill -s INT $loader
tenths=0
while kill -0 $loader 2>/dev/null && [ $tenths -lt $((100 * PATIENCE)) ]; do sleep 0.1; tenths=$((tenths + 1)); done
status=0
[ $tenths -lt $((100 * PATIENCE)) ] && wait $loader || status=$?

echo "page: $status, $(sed 1d withheld.out | tr '\n' ' ' | sed 's/ $//')"
release one

serve two
withhold lock two
spilerun withheld.ko -T 1 >out 2>err && status=0 || status=$?
echo "held before: $(grep -c WARNING err) messages of 2 probes, $(head -n 1 err)"
echo "held before: status $status, another session $(soon 10 spilerun other.ko)"
release two

serve three
start_armed withheld ready
withhold lock three
kill -s INT $loader
sleep 4
waits=0
! loaded withheld || waits=1
echo "held later: waits $waits, another session $(soon 10 spilerun other.ko), the log names it $(dmesg | grep -c 'waiting for process [0-9]*, which has locked its mappings, to remove ')"
release three
status=0
wait $loader || status=$?
removed withheld
echo "held later: then $status"

mkdir "$place/served"
chown usr "$place/served"
served 5001 "$place/served" $program /tmp/file >served.log 2>&1 &
server=$!
wait_for served.log served
start_armed refused ready
began=0
"$place/served/good" none /tmp/file >/dev/null || began=$?
wait_for refused.out began || true
stop
echo "served: $(grep -c WARNING refused.err) message, $(grep -m 1 FUSE refused.err), the program $began, began $(grep -c began refused.out)"
status=$(soon 10 sh -c 'exec spilerun silent.ko -T 1 2>soon.err')
echo "served, and withheld: status $status, $(grep -c WARNING soon.err) message"
kill -s KILL $server
umount -l "$place/served"
echo "left: $(grep -cE '^(withheld|refused|silent) ' /proc/modules)"
END
"$XTASK" guest --module fuse --program "$PWD/withholds" --file withheld.ko --file refused.ko --file silent.ko --file other.ko --file "$ROOT/tests/xtask/src/test/library.sh" --file scene.sh '. /root/scene.sh'
