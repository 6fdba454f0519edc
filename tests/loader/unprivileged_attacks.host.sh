# Shows: what a member of spileusr tries with a signed module of --privilege=stapusr, to learn of other processes or to affect
# them. The probes are in a library that all processes share, at a function and at a marker with a semaphore. Only the user's
# own processes get them, also those in a user namespace that the user has made; the others are neither shown nor counted, their
# code and memory are as before: root's, another user's, one with a capability, one in root's user namespace, another user's in
# the user's own namespace, one that is undumpable. Nothing that the caller passes changes the owner, other users can neither use
# nor end the session. Root's session with the same module reaches all of them.
# limit: 240
# stdout: ^other attaches: 4 ERROR: the session of own belongs to usr: only that user and root may do this$
# stdout: ^other ends: 4 ERROR: the session of own belongs to usr: only that user and root may do this$
# stdout: ^other disables: 4 ERROR: changing other sessions: only for root and members of the group spilesys$
# stdout: ^other opens: 2 not opened$
# stdout: ^usr unloads: 1 Operation not permitted$
# stdout: ^usr: probed: after hides, after namespace, after own, before hides, before namespace, before own,$
# stdout: ^usr: untouched: after another, after capable, after mapped, after other, after root, after undumpable, before another, before capable, before mapped, before other, before root, before undumpable,$
# stdout: ^usr: after hides$
# stdout: ^usr: after namespace$
# stdout: ^usr: after own$
# stdout: ^usr: before hides$
# stdout: ^usr: before namespace$
# stdout: ^usr: before own$
# stdout: ^usr: 12 lines, 18 hits, 18 handled, 0 filtered$
# stdout: ^root: probed: after another, after capable, .*, before root, before undumpable,$
# stdout: ^root: untouched:$
# stdout: ^another process: 0, 0 lines$
# stdout: ^a parameter: 2 ERROR: spile_uid=0: no such global that can be set; there is text
# stdout: ^left: 0$
# absent: usr: (before|after) (root|other|capable|another|mapped|undumpable)

cat >shared.c <<'EOF'
/* A marker shared:reached with a semaphore, as <sys/sdt.h> makes them. */
__attribute__((section(".probes"))) volatile unsigned short shared_reached_semaphore;
__attribute__((noinline)) int work(int n, const char *text)
{
	__asm__ volatile("nop\n990: nop\n"
			 ".pushsection .note.stapsdt,\"?\",\"note\"\n"
			 ".balign 4\n.4byte 992f-991f, 994f-993f, 3\n991: .asciz \"stapsdt\"\n992: .balign 4\n"
			 "993: .8byte 990b\n.8byte _.stapsdt.base\n.8byte shared_reached_semaphore\n"
			 ".asciz \"shared\"\n.asciz \"reached\"\n.asciz \"8@%0\"\n994: .balign 4\n.popsection\n"
			 ".ifndef _.stapsdt.base\n.pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"
			 ".weak _.stapsdt.base\n.hidden _.stapsdt.base\n_.stapsdt.base: .space 1\n"
			 ".size _.stapsdt.base, 1\n.popsection\n.endif\n"
			 : : "r"(text) : "memory");
	return n + 1;
}
int is_probed(void) { return *(volatile unsigned char *)work == 0xcc; }
int is_raised(void) { return shared_reached_semaphore; }
EOF
# prog KIND WHEN: becomes a process of that kind; when /tmp/go is there, it calls the function and says what the library looks like.
cat >prog.c <<'EOF'
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int work(int n, const char *text);
int is_probed(void);
int is_raised(void);

static void become(int id)
{
	if (setgroups(0, NULL) || setresgid(id, id, id) || setresuid(id, id, id))
		_exit(90);
}
static void keep_a_capability(int id)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct sets[2] = { { 1 << CAP_NET_RAW, 1 << CAP_NET_RAW, 1 << CAP_NET_RAW } };

	prctl(PR_SET_KEEPCAPS, 1);
	become(id);
	if (syscall(SYS_capset, &header, sets) || prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_RAW, 0, 0))
		_exit(91);
}
static void write_file(int pid, const char *name, const char *text)
{
	char path[64];
	int file;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	file = open(path, O_WRONLY);
	if (file < 0 || write(file, text, strlen(text)) < 0)
		_exit(92);
	close(file);
}
/* A user namespace of `maker`, which root maps, and in it the user `id`; in a child. */
static void enter(int maker, const char *map, int id)
{
	int ready[2], mapped[2], child;
	char byte = 0;

	if (pipe(ready) || pipe(mapped))
		_exit(93);
	child = fork();
	if (child) {
		int status = 0;

		read(ready[0], &byte, 1);
		write_file(child, "uid_map", map);
		write_file(child, "gid_map", map);
		write(mapped[1], &byte, 1);
		waitpid(child, &status, 0);
		_exit(WEXITSTATUS(status));
	}
	if (maker)
		become(maker);
	if (unshare(CLONE_NEWUSER))
		_exit(94);
	prctl(PR_SET_DUMPABLE, 1);
	write(ready[1], &byte, 1);
	read(mapped[0], &byte, 1);
	become(id);
}
int main(int argc, char **argv)
{
	const char *kind = argv[1];
	char text[64];
	int i;

	if (argc == 3) {
		if (!strcmp(kind, "own") || !strcmp(kind, "hides") || !strcmp(kind, "undumpable"))
			become(5001);
		else if (!strcmp(kind, "other"))
			become(5002);
		else if (!strcmp(kind, "capable"))
			keep_a_capability(5001);
		else if (!strcmp(kind, "another"))
			enter(0, "0 0 10000", 5001);
		else if (!strcmp(kind, "mapped"))
			enter(5001, "0 5001 1\n1 5002 1", 1);
		else if (!strcmp(kind, "namespace"))
			enter(5001, "0 5001 1", 0);
		execl("/proc/self/exe", argv[0], kind, argv[2], "ready", NULL);
		return 95;
	}
	if (!strcmp(kind, "undumpable"))
		prctl(PR_SET_DUMPABLE, 0);
	snprintf(text, sizeof(text), "/tmp/ready.%s.%s", argv[2], kind);
	close(open(text, O_CREAT | O_WRONLY, 0666));
	while (access("/tmp/go", F_OK))
		usleep(10000);
	snprintf(text, sizeof(text), "%s %s", argv[2], kind);
	i = work(1, text);
	printf("%s: %s\n", is_probed() && is_raised() ? "probed" : is_probed() || is_raised() ? "in part" : "untouched", text);
	/* From here on it is not the user's any more. */
	if (!strcmp(kind, "hides")) {
		prctl(PR_SET_DUMPABLE, 0);
		work(i, "secret");
	}
	return 0;
}
EOF
gcc -g -O2 -shared -fPIC -Wl,--build-id=sha1 -o libshared.so shared.c
gcc -g -O2 -Wl,--build-id=sha1 -o prog prog.c -L. -lshared -Wl,-rpath,"$PWD"
openssl req -new -x509 -newkey rsa:2048 -nodes -days 9 -subj "/CN=trusted/" -keyout trusted.key -out trusted.pem 2>/dev/null
openssl x509 -in trusted.pem -outform DER -out trusted.x509 || exit
cat >own.stp <<EOF
global text = "a"
probe process("$PWD/libshared.so").function("work") { printf("%s\n", user_string(\$text)) }
probe process("$PWD/libshared.so").mark("reached") { printf("%s %d\n", user_string(\$arg1), is_myproc()) }
probe process("$PWD/libshared.so").function("work").return { returned += \$return * 0 + @entry(\$n) }
probe end { if (text == "never") println(returned) }
global returned
EOF
export SPILE_CACHE_DIR=$PWD/cache
cp -r "$CACHE" cache
"$SPILE" -r "$RELEASE" -p4 -m own --privilege=stapusr --sign-key trusted.key --sign-cert trusted.pem own.stp >/dev/null || exit
cat >scene.sh <<EOF
prog=$PWD/prog
mkdir -p $PWD
EOF
cat >>scene.sh <<'EOF'
printf "spileusr:x:601:usr,other\nusr:x:5001:\nother:x:5002:\n" >>/etc/group
printf "usr:x:5001:5001::/tmp:/bin/sh\nother:x:5002:5002::/tmp:/bin/sh\n" >>/etc/passwd
cp /usr/bin/spilerun /usr/bin/suid && chmod 4755 /usr/bin/suid
mkdir -p /etc/spile/keys && cp /root/trusted.x509 /etc/spile/keys
mkdir -m 777 /tmp/own && cp /root/own.ko /tmp/own && chmod 1777 /tmp
kinds="root own other hides undumpable capable another mapped namespace"
# start WHEN: a process of each kind, which waits.
start() {
	for kind in $kinds; do
		$prog $kind $1 >/tmp/said.$1.$kind &
		started="$started $!"
		tenths=0
		until [ -e /tmp/ready.$1.$kind ] || [ $tenths -gt 300 ]; do
			usleep 100000
			tenths=$((tenths + 1))
		done
	done
}
# session NAME COMMAND...: with processes that are older, and others that are younger.
session() {
	name=$1
	shift
	started=
	rm -f /tmp/go /tmp/ready.* /tmp/said.*
	start before
	"$@" >/tmp/$name.out 2>/tmp/$name.err &
	loader=$!
	tenths=0
	until spilerun status own 2>/dev/null | grep -q ": running, " || [ $tenths -gt 300 ]; do
		usleep 100000
		tenths=$((tenths + 1))
	done
	start after
}
# finish: lets the processes of session() work, and ends the session.
finish() {
	: >/tmp/go
	wait $started
	spilerun status own --json >/tmp/$name.json
	kill -INT $loader
	wait $loader
	cat /tmp/$name.err
	for what in probed untouched "in part"; do echo "$name: $what: $(sed -n "s/^$what: //p" /tmp/said.* | sort | tr "\n" "," | sed 's/,$/,/; s/,\(.\)/, \1/g')"; done | grep -v "in part: *$" | sed 's/ *$//'
}
# try WHAT COMMAND...
try() {
	what=$1
	shift
	status=0
	"$@" >/tmp/out 2>&1 || status=$?
	echo "$what: $status $(tail -n 1 /tmp/out)"
}
# sum COUNTER: over all probes of the session.
sum() { grep -o "\"$1\": *[0-9]*" /tmp/$name.json | sed 's/.*: *//' | awk '{ n += $1 } END { print n + 0 }'; }

session usr su usr -c "exec suid -r '1:x spile_uid=0' /tmp/own/own.ko 'text=a spile_uid=0'"
try "other attaches" su other -c "suid -A own"
try "other ends" su other -c "suid -d own"
try "other disables" su other -c "suid disable own 0"
try "other opens" su other -c "cat /dev/spile-own /proc/spile-own 2>/dev/null || { echo not opened; exit 2; }"
try "usr unloads" su usr -c "rmmod own 2>&1 | sed 's/.*: //'; exit 1"
finish
sed "s/^/usr: /; s/ 1$//" /tmp/usr.out | sort -u
echo "usr: $(wc -l </tmp/usr.out) lines, $(sum hits) hits, $(sum handled) handled, $(sum filtered) filtered"
rm -f /tmp/go
session root spilerun /root/own.ko
finish
rm -f /tmp/go
su usr -c "timeout -s INT 12 suid /tmp/own/own.ko -x 1" >/tmp/out 2>&1
echo "another process: $?, $(grep -vc '^NOTICE: interrupted: ' /tmp/out) lines"
cat /tmp/out
try "a parameter" su usr -c "suid /tmp/own/own.ko spile_uid=0"
echo "left: $(lsmod | grep -c own)"
EOF
"$XTASK" guest --program "$PWD/prog" --program "$PWD/libshared.so" --file own.ko --file trusted.x509 --file scene.sh '. /root/scene.sh'
