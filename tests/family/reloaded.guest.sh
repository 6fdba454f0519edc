# Shows: with a probe at each of the 16,000 functions of 20 modules, modules are unloaded, loaded and armed again; another build
# of one is refused by name, and the other modules are not affected. ^C ends it within two seconds on an emulated CPU; ftrace's part is removed in
# the background.
# family: yes
# script: functions functions.stp
# stdout: ^all: 16000$
# stdout: ^without: 12800$
# stdout: ^again: 16000$
# stdout: ^with another build: 15200$
# stdout: ^refused: fam19$
# stdout: ^the same again: 16000$
# stdout: ^ended in time$
# stdout: ^left: 0$
# stderr: Build-id mismatch .*"fam19"
# limit: 200
# alone: yes

for child in $(seq 11 19); do modprobe fam$child; done
probed() { grep -c '\[fam[0-9]*\]' /sys/kernel/debug/tracing/enabled_functions || true; }

start functions began
armed functions
echo "all: $(($(probed) - 1))"
rmmod fam19 fam18 fam17 fam16
echo "without: $(($(probed) - 1))"
for child in 16 17 18 19; do modprobe fam$child; done
echo "again: $(($(probed) - 1))"
rmmod fam19
insmod /root/variant/fam19.ko
echo "with another build: $(($(probed) - 1))"
echo 1 >/sys/module/fam19/parameters/run
wait_for functions.err fam19
echo "refused: $(sed -n 's/.*module "\(fam[0-9]*\)".*expected.*/\1/p' functions.err | sort -u)"
rmmod fam19
modprobe fam19
echo "the same again: $(($(probed) - 1))"
now() { cut -d' ' -f1 /proc/uptime | tr -d .; }
begin=$(now)
stop INT
took=$(($(now) - begin))
[ $took -lt $((200 * PATIENCE)) ] && took='in time' || took="after $((took * 10)) ms"
echo "ended $took"
removed functions
grep -v 'in the background\|interrupted: no handler runs' functions.err >&2
echo "left: $(probed)"
unload_family
