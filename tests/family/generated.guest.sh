# Shows: the generated modules load with their dependencies, and each of their functions is called once; the second build of a
# module has another build-id. Entry and return of a function share one registration with
# ftrace, and have no kprobe of their own. Many probes at one address share a kprobe and run in the order of the script.
# family: yes
# script: both both.stp
# modules: fam19
# stdout: ^loaded: fam00 fam01 fam10 fam19$
# stdout: ^calls: 0 800$
# stdout: ^another build$
# stdout: ^served by the expected mechanisms$
# stdout: ^both: 800 800$
# stdout: ^copies: 400 400 400$

note() { od -An -tx1 /sys/module/fam19/notes/.note.gnu.build-id; }
run=/sys/module/fam19/parameters/run

echo "loaded: $(cut -d ' ' -f 1 /proc/modules | grep '^fam' | sort | xargs)"
before=$(cat $run)
echo 1 >$run
echo "calls: $before $(cat $run)"
first=$(note)
rmmod fam19
insmod /root/variant/fam19.ko
[ "$(note)" != "$first" ] && echo another build

start_armed both began
once=$(grep -c '^fam00_f[0-9]* \[fam00\] (1)' /sys/kernel/debug/tracing/enabled_functions || true)
# Returns share kretprobes (return_pool.c), which hold the frames of calls in flight.
copies=$(grep -c ' k *fam00_f[0-9]*+0x' /sys/kernel/debug/kprobes/list || true)
kretprobes=$(grep fam00_f /sys/kernel/debug/kprobes/list | grep -vc ' k *fam00_f[0-9]*+0x' || true)
[ $kretprobes -gt 40 ] || kretprobes=few
# Without hooked returns (before 5.18) each return is a kretprobe beside the entry.
case $(uname -r) in 5.10.*) expected='0 800 400' ;; *) expected='800 few 400' ;; esac
served="$once $kretprobes $copies"
[ "$served" = "$expected" ] || echo "calls served once, kretprobes, kprobes at copies: $served"
[ "$served" != "$expected" ] || echo served by the expected mechanisms
echo 1 >/sys/module/fam00/parameters/run
stop INT
cat both.out
unload_family
