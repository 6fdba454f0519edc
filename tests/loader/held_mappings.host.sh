# Shows: processes of a user that hold the lock of their mappings, of a file with probes, hold up nothing but these probes. One that is killed while
# it is waited for, and whose asynchronous I/O never ends (FUSE), is not waited for in its place. Twenty that hold it by turns do not
# keep a session that is interrupted. While a probe cannot be turned off, those with conditions are turned, the session can be asked, and a probe is
# switched off and on. A session that has ended prints what its end probes do, and modules are loaded while it waits for one.
# limit: 240
# stdout: ^killed: 0, 0 warnings, it waits 1$
# stdout: ^by turns: interrupted, gone 0$
# stdout: ^turned off: the other probe 0, status 0, switching 0, then 0 hits$
# stdout: ^switched on: 0 0, handled 0 0$
# stdout: ^ended: 0, end, left 1, the log names it 1$
# stdout: ^meanwhile: a probed module 0, another session 0, another module 0$
# stdout: ^then: 0$
# stdout: ^left: 0$

cat >holds.c <<'END'
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/aio_abi.h>

__attribute__((noinline, noclone)) void work(const char *text)
{
	asm volatile("" ::"r"(text) : "memory");
}
/* Asynchronous I/O that is under way until the file's server answers. */
static void begin_reading(const char *path)
{
	static char room[4096] __attribute__((aligned(4096)));
	aio_context_t context = 0;
	struct iocb request = { .aio_lio_opcode = IOCB_CMD_PREAD, .aio_buf = (unsigned long)room, .aio_nbytes = sizeof(room) };
	struct iocb *requests = &request;

	request.aio_fildes = open(path, O_RDONLY | O_DIRECT);
	if (syscall(SYS_io_setup, 1, &context) || syscall(SYS_io_submit, context, 1, &requests) != 1)
		perror("AIO");
}
static size_t bytes = 4096;
static char *pages;
/* The kernel reads the pages with the lock held. */
static void *hold(void *unused)
{
	int memory = open("/proc/self/mem", O_RDONLY);
	size_t at;
	char byte;

	for (at = 0; at < bytes; at += 4096)
		pread(memory, &byte, 1, (long)(pages + at));
	return NULL;
}
/* holds work | lock FILE | reading FILE OTHER | often FILE NUMBER */
int main(int argc, char **argv)
{
	off_t begin = 0;
	pthread_t thread;

	if (!strcmp(argv[1], "work")) {
		work("text");
		return 0;
	}
	if (!strcmp(argv[1], "reading"))
		begin_reading(argv[3]);
	if (!strcmp(argv[1], "often")) {
		bytes = 1 << 20;
		begin = atoi(argv[3]) * (off_t)bytes;
	}
	pages = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, open(argv[2], O_RDONLY), begin);
	if (pages == MAP_FAILED)
		return 2;
	/* Each page is read by itself. */
	madvise(pages, bytes, MADV_RANDOM);
	puts("begins");
	fflush(stdout);
	pthread_create(&thread, NULL, hold, NULL);
	pthread_join(thread, NULL);
	return 0;
}
END
gcc -g -O2 -Wl,--build-id=sha1 -o holds holds.c -lpthread 2>/dev/null
cat >armed.stp <<END
probe begin { println("ready") }
probe process("$PWD/holds").function("work") { hits++ }
probe end { println("end") }
global hits
END
cat armed.stp - >both.stp <<END
probe module("lustre").function("ll_xattr_cache_refill") { hits++ }
END
cat >turned.stp <<END
global second
probe begin { println("ready") }
probe timer.s(1) { second++; printf("second %d\n", second % 10) }
probe process("$PWD/holds").function("work") if (second % 10 < 5) { println("hit") }
probe timer.ms(200) if (second % 10 >= 5) { println("other") }
probe process("$PWD/holds").function("work").return { printf("returned %s\n", user_string(@entry(\$text))) }
END
echo 'probe timer.ms(10) { exit() }' >other.stp
for word in $MODULES; do
	case $word in
	*/lustre.ko) [ -n "$target" ] || target=$word ;;
	*/lustre-*) [ -n "$target" ] || [ ! -e "$word/lustre.ko" ] || target=$word/lustre.ko ;;
	esac
done
cp "$target" lustre.ko || exit
for name in armed turned other; do "$SPILE" -r "$RELEASE" -p4 -m $name $name.stp >/dev/null || exit; done
"$SPILE" -r "$RELEASE" -d "$PWD/lustre.ko" -p4 -m both both.stp >/dev/null || exit
echo "program=$PWD/holds" >scene.sh
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
# run_holder NAME ARGUMENTS: a process of the user's.
run_holder() {
	name=$1
	shift
	su usr -c "exec $program $*" >$name.out 2>&1 &
	wait_for $name.out begins
}
# release NAME: the server ends.
release() {
	kill -s KILL $server
	umount -l /tmp/$1
}
# ends SECONDS PROCESS: sets $status, also if it does not end; then it is not waited for.
ends() {
	status='does not end'
	for tenth in $(seq $(($1 * 10 * PATIENCE))); do
		if ! kill -0 $2 2>/dev/null; then
			status=0
			wait $2 || status=$?
			return
		fi
		sleep 0.1
	done
}
# within SECONDS COMMAND...: prints the same of a command.
within() {
	seconds=$1
	shift
	"$@" >/dev/null 2>&1 &
	ends $seconds $!
	echo $status
}

serve reading
reading=$server
serve killed
run_holder killed reading /tmp/killed/hangs /tmp/reading/hangs
cat killed.out | grep AIO || true
spilerun armed.ko -T 1 >out 2>err &
session=$!
for tenth in $(seq 600); do
	! grep -qx spile-maps /proc/[0-9]*/comm 2>/dev/null || break
	sleep 0.05
done
holder=$(named holds | head -n 1)
kill -s KILL $holder
release killed
ends 15 $session
echo "killed: $status, $(grep -c WARNING err) warnings, it waits $(cat /proc/$holder/task/*/status | grep -c '^State:.D')"
server=$reading
release reading
unloaded armed

serve turns
for number in $(seq 20); do
	run_holder turn$number often /tmp/turns/slow $number
done
rm out
spilerun armed.ko >out 2>err &
session=$!
wait_for out ready
sleep 3
kill -s INT $session
began=$(cut -d. -f1 /proc/uptime)
unloaded armed
took=$(($(cut -d. -f1 /proc/uptime) - began))
[ $took -lt $((10 * SLOWNESS)) ] && took=0
echo "by turns: interrupted, gone $took"
wait $session || true
kill -s KILL $(named holds)
release turns

serve off
start_armed turned ready
wait_for turned.out other
# It is turned on for five seconds from here.
wait_for turned.out 'second 0' 20
run_holder off lock /tmp/off/hangs
count() { grep -c $1 turned.out || true; }
before=$(count other)
seen=1
for tenth in $(seq $((200 * PATIENCE))); do
	[ $(count other) = $before ] || { seen=0; break; }
	sleep 0.1
done
asked=$(within 15 spilerun status turned)
switched=$(within 15 spilerun disable turned 4)
$program work
$program work
sleep 0.5
echo "turned off: the other probe $seen, status $asked, switching $switched, then $(count returned) hits"
# handled: whether the probe that was switched on handles the hits of a process.
handled() {
	before=$(count returned)
	for second in $(seq $((20 * PATIENCE))); do
		$program work
		sleep 1
		[ $(count returned) = $before ] || { echo 0; return; }
	done
	echo 1
}
# released NAME
released() {
	release $1
	for tenth in $(seq $((100 * PATIENCE))); do [ -n "$(named holds)" ] || return 0; sleep 0.1; done
}
asked=$(within 15 spilerun enable turned 4)
first=$(handled)
released off
# What is known of the file is forgotten then.
sleep 6
spilerun disable turned 4
serve on
run_holder on lock /tmp/on/hangs
sleep 1
again=$(within 15 spilerun enable turned 4)
released on
second=$(handled)
echo "switched on: $asked $again, handled $first $second"
stop INT
removed turned

serve ended
start_armed both ready
run_holder ended lock /tmp/ended/hangs
sleep 1
kill -s INT $loader
ends 15 $loader
echo "ended: $status, $(sed -n 2p both.out), left $(grep -c '^both' /proc/modules), the log names it $(dmesg | grep -c 'both: waiting for process [0-9]*, which has locked its mappings, to remove ')"
sleep 1
echo "meanwhile: a probed module $(within 10 insmod lustre.ko), another session $(within 10 spilerun other.ko), another module $(within 10 modprobe overlay)"
release ended
removed both
echo "then: $(grep -c '^both' /proc/modules)"
echo "left: $(grep -cE '^(armed|turned|both|other) ' /proc/modules)"
END
"$XTASK" guest --module fuse --module overlay --program "$PWD/holds" --file armed.ko --file turned.ko --file both.ko --file other.ko --file lustre.ko \
	--file "$ROOT/tests/xtask/src/test/library.sh" --file scene.sh '. /root/scene.sh'
