# Shows: a service without a module for its kernel fetches one and checks it, or has it built; failures are reported with status 5
# or that of the file, and no wrong module is installed.
# script: ticks ticks.stp
# script: other tests/loader/ticks.stp
# limit: 60
# stdout: ^nothing there: 5$
# stdout: ^damaged: 3$
# stdout: ^another script: 2$
# stdout: ^fetched: ready, 755 644$
# stdout: ^no compiler: 5 .*no module for kernel
# stdout: ^does not compile: 5 .*no module for kernel
# stdout: ^rebuilt: ready$
# stdout: ^-g -p4 -m ticks -r [^ ]* /root/.*ticks.stp$

mkdir -p bin store/$(uname -r)
printf '#!/bin/sh\n' >bin/systemctl
chmod +x bin/systemctl
mkdir -p /run/systemd/system
export PATH=$PWD/bin:$PATH
place=/lib/modules/$(uname -r)/spile/ticks.ko
spilerun service install ticks ticks.ko >/dev/null 2>&1
rm $place
configure() { printf '%s\n' "$@" >/etc/spile/ticks.conf; }
# run: runs the service; its status is printed, its messages go to err.
run() {
	status=0
	timeout 20 spilerun service run ticks >out 2>err </dev/null || status=$?
}
refused() {
	run
	echo "$1: $status $(tail -n 1 err)" | sed 's/^\(nothing there\|another script\|damaged\): \(.\).*/\1: \2/'
	[ ! -e $place ]
}

configure MISSING=fetch DIRECTORY=$PWD/store
refused 'nothing there'
head -c 20000 ticks.ko >store/$(uname -r)/ticks.ko
refused damaged
cp other.ko store/$(uname -r)/ticks.ko
refused 'another script'
cp ticks.ko store/$(uname -r)/ticks.ko
configure MISSING=fetch DIRECTORY=$PWD/store OPTIONS='-T 0.3'
rmdir ${place%/*}
(umask 027; run)
echo "fetched: $(head -n 1 out), $(stat -c %a ${place%/*}) $(stat -c %a $place)"
cmp ticks.ko $place
rm $place

configure MISSING=rebuild SCRIPT=$PWD/ticks.stp BUILD_OPTIONS=-g OPTIONS='-T 0.3'
refused 'no compiler'
grep -q 'spile cannot be started to build it' err
status=0
spilerun service check 2>check || status=$?
[ $status = 5 ]
printf '#!/bin/sh\nexit 1\n' >bin/spile
chmod +x bin/spile
refused 'does not compile'
# Replaces the compiler, which is not in the guest.
printf '#!/bin/sh\necho "$@" >%s/called\ncp %s/ticks.ko .\n' $PWD $PWD >bin/spile
run
echo "rebuilt: $(head -n 1 out)"
cat called
gone ticks
spilerun service check
spilerun service remove ticks
