# Shows: the life cycle of a service, by the command lines of its unit (systemctl is replaced by a program that records its
# arguments); after spilerun is killed the next one attaches to the session; a missing module for the kernel is reported with
# status 5.
# script: ticks ticks.stp
# limit: 60
# stdout: ^installed ticks: .* yes$
# stdout: ^enable --now spile@ticks.service$
# stdout: ^attached$
# stdout: ^stopped 0$
# stdout: ^no module 5 service ticks has no module for kernel 9.9.9$
# stdout: ^wrong configuration 2$
# stdout: ^disable --now spile@ticks.service$
# stdout: ^removed 3$

mkdir -p bin
printf '#!/bin/sh\necho "$*" >>/tmp/systemctl\n' >bin/systemctl
chmod +x bin/systemctl
mkdir -p /run/systemd/system
export PATH=$PWD/bin:$PATH

spilerun service install ticks ticks.ko >/dev/null
echo "installed $(spilerun service list)"
spilerun service enable ticks
grep enable /tmp/systemctl

spilerun service run ticks >out.1 2>err &
loader=$!
wait_for out.1 'tick 20'
kill -s KILL $loader
wait $loader || true
loaded ticks
sleep 0.5
spilerun service run ticks >out.2 2>err &
loader=$!
wait_for out.2 'tick'
sleep 0.5
kill -s TERM $loader
wait $loader
gone ticks
if grep ready out.2; then exit 1; fi
cat out.1 out.2 | sed -n 's/^tick \([0-9]*\) x*$/\1/p' | sort -n -u >numbers
[ "$(tail -n 1 numbers)" = "$(wc -l <numbers)" ]
echo attached
echo "$(tail -n 1 out.2) 0"

status=0
spilerun service check 9.9.9 2>err || status=$?
echo "no module $status $(sed -n 's/^WARNING: \(.*9.9.9\):.*/\1/p' err)"
cp /etc/spile/ticks.conf /tmp/conf
echo 'COLOUR=red' >>/etc/spile/ticks.conf
status=0
spilerun service run ticks 2>err || status=$?
echo "wrong configuration $status"
cp /tmp/conf /etc/spile/ticks.conf

spilerun service remove ticks
grep disable /tmp/systemctl
[ ! -e "/lib/modules/$(uname -r)/spile/ticks.ko" ]
status=0
spilerun service run ticks 2>err || status=$?
echo "removed $status"
