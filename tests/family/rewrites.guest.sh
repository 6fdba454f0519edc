# Shows: on a module built elsewhere: a rewrite expires, is not falsely renewed, and is renewed; its line names the register; status
# says why probes of an absent module, and of another build of it, are not armed; members of enum types have names, numbers of one
# byte are numbers; both ways to one line are probed; a stored stack keeps its names over a reload, and a
# number is not named by what came in its place; a service is
# installed and removed without systemd.
# family: yes
# script: fix -g fix.stp
# script: stored stored_values.stp
# limit: 120
# stdout: ^  module fam19 is not loaded$
# stdout: ^expired$
# stdout: ^refused 2, reason reported$
# stdout: ^renewed$
# stdout: ^register named$
# stdout: \.state=FAM_DONE[,}]
# stdout: \.m09=-7[,}]
# stdout: \.m03="fam19"
# stdout: ^  module fam19 is another build: the script was compiled for build-id [0-9a-f]{40} \(.*\), loaded is [0-9a-f]{40}$
# stdout: ^installed 0, removed 0, left 0$
# stdout: ^fresh fam17_f0799$
# stdout: ^both ways: 2$
# stdout: ^number (0x[0-9a-f]+, element 0x[0-9a-f]+ \[<unknown>\]|fam18_f0001, element fam18_f0001 \[fam18\])$
# stdout: ^stack fam18_f0001\+0x[0-9a-f]+/0x[0-9a-f]+ \[fam18\]$
# absent: /0xf{8}

ran() { echo 1 >/sys/module/$1/parameters/run; }
modprobe fam01
start_armed fix started --expires "$((3 * SLOWNESS))s"
spilerun status fix | grep 'module fam19'
ran fam01
wait_for fix.err 'REWRITE: fix has expired' 30
spilerun status fix | grep -q 'mode expired' && echo expired
status=0
spilerun enforce fix 2>refusal || status=$?
grep -q 'has expired and no longer rewrites: spilerun enforce fix --expires' refusal && echo "refused $status, reason reported"
spilerun enforce fix --expires 1h >/dev/null
spilerun status fix | grep -q 'mode enforce' && echo renewed
ran fam01
wait_for fix.err 'REWRITE: rewritten by' 30
grep -q 'return value, register rax from' fix.err && echo 'register named'
modprobe fam19
ran fam19
wait_for fix.out '.m03="fam19"' 30
grep -o '\.state=FAM_DONE[,}]' fix.out | head -n 1
grep -o '\.m09=-7[,}]' fix.out | head -n 1
grep -o '\.m03="fam19"' fix.out | head -n 1
rmmod fam19
insmod /root/variant/fam19.ko
spilerun status fix | grep 'module fam19'
stop INT
rmmod fam19

rm -rf /run/systemd/system
first=0 second=0
spilerun service install fix fix.ko >/dev/null || first=$?
spilerun service remove fix >/dev/null || second=$?
echo "installed $first, removed $second, left $(ls /lib/modules/$(uname -r)/spile/fix.ko /etc/spile/fix.conf 2>/dev/null | wc -l)"

modprobe fam18
start_armed stored started
ran fam18
rmmod fam18
modprobe fam17
ran fam17
modprobe fam18
stop INT
grep '^both ways\|^number\|^fresh fam17_f0799' stored.out
sed -n 's/^ *0x[0-9a-f]* : \(fam18_f0001.*\)/stack \1/p' stored.out | head -n 1
unload_family
