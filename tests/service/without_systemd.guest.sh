# Shows: without systemd a service is installed and removed too, and the remaining steps are printed.
# script: ticks ticks.stp
# stdout: ^systemd does not run here, so nothing starts ticks: .*`spilerun service run ticks`
# stdout: ^installed 0: module configuration unit$
# stdout: ^enable 2: .*systemd does not run here
# stdout: ^ready$
# stdout: ^systemd does not run here: remove `spilerun service run ticks` from
# stdout: ^removed 0, left: 0$

# Other tests replace systemd by a script.
rm -rf /run/systemd/system
place=/lib/modules/$(uname -r)/spile/ticks.ko
status=0
spilerun service install ticks ticks.ko || status=$?
there=
[ -e $place ] && there="$there module"
[ -e /etc/spile/ticks.conf ] && there="$there configuration"
[ -e /etc/systemd/system/spile@.service ] && there="$there unit"
echo "installed $status:$there"
status=0
spilerun service enable ticks 2>err || status=$?
echo "enable $status: $(cat err)"
timeout 20 spilerun service run ticks >out 2>run.err </dev/null || true
grep ready out
status=0
spilerun service remove ticks || status=$?
echo "removed $status, left: $(ls $place /etc/spile/ticks.conf 2>/dev/null | wc -l)"
