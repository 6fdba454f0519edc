# Shows: no environment variable makes a set-uid spilerun open a file of the caller's choice, load a library, or run a program
# with root's rights, also when it fails; a relative PATH only applies to the command of -c, which has the caller's rights.
# script: ticks ticks.stp
# limit: 120
# stdout: ^control: seen$
# stdout: ^status 0: nothing opened$
# stdout: ^status 8: nothing opened$
# stdout: ^status 9: nothing opened$
# stdout: ^the command is the caller's: 5001$

approve ./*.ko
printf 'spileusr:x:601:usr\n' >>/etc/group
add_users usr:5001 no:5004
make_suid
enter_open
mkdir evil && chmod 755 evil
printf '#!/bin/sh\nid -u >/tmp/open/ran\n' >evil/job
cp evil/job evil/modprobe
chmod 755 evil/*
for file in x.so gconv-modules zone C; do echo evil >evil/$file; done
# Run by root's tracer, so that set-uid keeps its effect. Files opened below evil because of the environment are detected.
cat >traced <<'END'
cd /tmp/open
at=/tmp/open/evil
export LD_PRELOAD=$at/x.so LD_LIBRARY_PATH=$at LD_AUDIT=$at/x.so LD_DEBUG_OUTPUT=$at/debug LD_DEBUG=all GCONV_PATH=$at LOCPATH=$at LANG=xx_XX LC_ALL=xx_XX
export NLSPATH=$at/%N MALLOC_TRACE=$at/trace MALLOC_CHECK_=3 GLIBC_TUNABLES=glibc.malloc.check=3 TZ=:$at/zone TZDIR=$at TMPDIR=$at HOSTALIASES=$at/hosts
export RUST_BACKTRACE=full RUST_LIB_BACKTRACE=1 MODPROBE_OPTIONS="-C $at" NOTIFY_SOCKET=$at/socket SYSTEMTAP_DIR=$at HOME=$at PATH=evil:$PATH
exec "$@"
END
chmod 755 traced
opened() { grep -o '"/tmp/open/evil[^"]*"\|"evil/[^"]*"' log | grep -v 'evil/socket' | sort -u | tr '\n' ' '; }
traces() {
	s=0
	rm -f log
	su usr -c 'sh ./traced true' && strace -f -u usr -e trace=openat,open,execve,connect -o log sh ./traced "$@" >/dev/null 2>err || s=$?
	# Until the shell executes it, everything belongs to the caller.
	sed -i '1,/execve("\/usr\/bin\/suid"/d' log
	grep -q '"/etc/group"' log
}
strace -f -o log sh -c 'cat /tmp/open/evil/zone' >/dev/null 2>&1
[ -n "$(opened)" ]
echo control: seen
traces /usr/bin/suid ticks -T 0.2 -o out%Y
echo "status $s: $([ -z "$(opened)" ] && echo nothing opened || opened)"
gone ticks
traces /usr/bin/suid ticks -T 0.2 -o /no/such/place
echo "status $s: $([ -z "$(opened)" ] && echo nothing opened || opened)"
traces /usr/bin/suid -d ticks
echo "status $s: $([ -z "$(opened)" ] && echo nothing opened || opened)"
as usr 'PATH=evil:$PATH suid ticks -c job' >/dev/null 2>err
echo "the command is the caller's: $(cat ran)"
