# Shows: a module compiled with --privilege=stapusr and signed with a key that root trusts is run by members of spileusr, and its
# probes in a program see the caller's own processes alone: not root's, not those of another user, not a set-uid program's
# even after it has given up root's rights, none that made itself undumpable; the values saved at the entry and the
# begin of a process neither. Root sees all. Without the privilege or the signature the module is refused.
# limit: 240
# stdout: ^usr: begin 5001$
# stdout: ^usr: work 1 by 5001 plain 1$
# stdout: ^usr: 1 returned 2$
# stdout: ^usr: own 1$
# stdout: ^usr: 5 lines$
# stdout: ^root: work 1 by 5001 plain 1$
# stdout: ^root: work 2 by 0 root 1$
# stdout: ^root: work 3 by 5002 other 1$
# stdout: ^root: work 4 by 5001 setuid 1$
# stdout: ^root: work 5 by 5001 undumpable 1$
# stdout: ^root: work 6 by 5001 group 1$
# stdout: ^unsigned: 4 .*this one is not signed
# stdout: ^everything: 4 .*modules compiled with --privilege=stapusr that a signer trusted by root has signed
# stdout: ^left: 0$
# absent: secret

cat >prog.c <<'EOF'
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
__attribute__((noinline)) int work(int n, const char *text) { __asm__ volatile("" : : "r"(text) : "memory"); return n + 1; }
int main(int argc, char **argv)
{
	if (!strcmp(argv[2], "undumpable"))
		prctl(PR_SET_DUMPABLE, 0);
	if (!strcmp(argv[2], "setuid") && setresuid(getuid(), getuid(), getuid()))
		return 1;
	return work(atoi(argv[1]), argv[2]) == 0;
}
EOF
gcc -g -O2 -Wl,--build-id=sha1 -o prog prog.c
cat >own.stp <<EOF
probe process("$PWD/prog").begin { printf("begin %d\n", uid()) }
probe process("$PWD/prog").function("work") { printf("work %d by %d %s %d\n", \$n, uid(), user_string(\$text), is_myproc()) }
probe process("$PWD/prog").function("work").return { printf("%d returned %d\n", @entry(\$n), \$return) own++ }
probe timer.hz(100) { if (!is_myproc() && (uid() != -1 || pid() || execname() != "")) println("secret of another process") }
global own
probe end { printf("own %d\n", own) }
EOF
openssl req -new -x509 -newkey rsa:2048 -nodes -days 9 -subj "/CN=trusted/" -keyout trusted.key -out trusted.pem 2>/dev/null
openssl x509 -in trusted.pem -outform DER -out trusted.x509 || exit
export SPILE_CACHE_DIR=$PWD/cache
cp -r "$CACHE" cache
"$SPILE" -r "$RELEASE" -p4 -m own --privilege=stapusr own.stp >/dev/null || exit
cp own.ko unsigned_own.ko
mkdir unsigned signed && mv unsigned_own.ko unsigned/own.ko
"$SPILE" -r "$RELEASE" -p4 -m own --privilege=stapusr --sign-key trusted.key --sign-cert trusted.pem own.stp >/dev/null || exit
"$SPILE" -r "$RELEASE" -p4 -m everything --sign-key trusted.key --sign-cert trusted.pem own.stp >/dev/null || exit
cp own.ko signed/own.ko
cp unsigned/own.ko unsigned.ko
cat >scene.sh <<EOF
printf "spileusr:x:601:usr\nusr:x:5001:\nother:x:5002:\n" >>/etc/group
printf "usr:x:5001:5001::/tmp:/bin/sh\nother:x:5002:5002::/tmp:/bin/sh\n" >>/etc/passwd
cp /usr/bin/spilerun /usr/bin/suid && chmod 4755 /usr/bin/suid
mkdir -p $PWD /etc/spile/keys && cp /root/prog $PWD/prog && cp /root/trusted.x509 /etc/spile/keys
mkdir -m 777 /tmp/own /tmp/own/unsigned && cp /root/own.ko /root/everything.ko /tmp/own && cp /root/unsigned.ko /tmp/own/unsigned/own.ko
prog=$PWD/prog
EOF
cat >>scene.sh <<'EOF'
run() {
	su usr -c "$prog 1 plain"
	$prog 2 root
	su other -c "$prog 3 other"
	chmod 4755 $prog
	su usr -c "$prog 4 setuid"
	chmod 755 $prog
	su usr -c "$prog 5 undumpable"
	chgrp other $prog && chmod 2755 $prog
	su usr -c "$prog 6 group"
	chmod 755 $prog
}
# session NAME COMMAND...: what it shows of the programs that run meanwhile.
session() {
	name=$1
	shift
	"$@" >/tmp/$name.out 2>/tmp/$name.err &
	loader=$!
	tenths=0
	until spilerun status own 2>/dev/null | grep -q ": running, " || [ $tenths -gt 300 ]; do
		usleep 100000
		tenths=$((tenths + 1))
	done
	run
	kill -INT $loader
	wait $loader
	sed "s/^/$name: /" /tmp/$name.out
	cat /tmp/$name.err
}
session usr su usr -c "exec suid /tmp/own/own.ko"
echo "usr: $(wc -l </tmp/usr.out) lines"
session root spilerun /root/own.ko
# try WHAT MODULE
try() {
	status=0
	su usr -c "suid $2" >/tmp/out 2>/tmp/err || status=$?
	echo "$1: $status $(cat /tmp/out /tmp/err | tr "\n" ";")"
}
try unsigned /tmp/own/unsigned/own.ko
try everything /tmp/own/everything.ko
echo "left: $(lsmod | grep -c "own\|everything")"
EOF
"$XTASK" guest --file prog --file own.ko --file unsigned.ko --file everything.ko --file trusted.x509 --file scene.sh '. /root/scene.sh'
