# Shows: a module contains only the parts of the runtime that its script uses: a script without probes in code is small,
# and has no family but those of its probes. With --kbuild it is the same; with --debug too.
# stdout: ^hello: at most 60 KB in memory, 150 KB on disk$
# stdout: ^hello, parts:  *$
# stdout: ^probes, parts: arrays settings sites $
# stdout: ^sources of hello: control ring session $
# stdout: ^and not: arming attach begun budget condition cpu_events entry fingerprint follow lines map module_notifier pace past_code program setting symbol user_files user_maps $
# stdout: ^hello, families:  *$
# stdout: ^probes, families: kprobe timer$
# stdout: ^arrays: there$
# stdout: ^arrays of hello: not there$
# stdout: ^by Kbuild: the same$
# stdout: ^with debug information: the same$

# Which functions of the runtime's files a module has: by one of each that nothing else calls.
has() { nm "$1" | grep -q " spile_$2$"; }
files() {
	for file in arming:arming_judge attach:attach_find begun:begun_prepare budget:budget_measure condition:condition_switch control:control_init \
		cpu_events:cpu_events_exit entry:entry_init fingerprint:fingerprints_match follow:follow_begin lines:line_in_module map:map_layout \
		module_notifier:modules_init pace:arming_registered past_code:past_code_event program:programs_exit ring:ring_setup \
		session:session_start setting:setting_set symbol:symbol_find user_files:user_files_unwind user_maps:mapping_path; do
		if has "$1" "${file#*:}"; then [ "$2" = there ] && printf '%s ' "${file%:*}"; else [ "$2" = there ] || printf '%s ' "${file%:*}"; fi
	done
	echo
}
parts() { nm "$1" | sed -n 's/.* spile_part_\(.*\)$/\1/p' | sort | tr '\n' ' '; }
families() { nm "$1" | sed -n 's/.* spile_\(.*\)_family$/\1/p' | sort | tr '\n' ' '; }
loaded() { size "$1" | awk 'NR == 2 { print $4 }'; }
arrays() { nm "$1" | grep -qE ' spile_map_(get|set|hold|find|put|add|feed)' && echo there || echo "not there"; }

export PATH=$COMPILE_ONCE:$PATH
hello='probe begin { println("hello") exit() }'
probes='global n, a probe kernel.function("vfs_read") { n++; a[tid()] = n } probe timer.s(1) { println(n) }'
"$SPILE" -r "$RELEASE" -p4 -m hello -e "$hello" >made
"$SPILE" -r "$RELEASE" -p4 -m probes -e "$probes" >made
"$SPILE" -r "$RELEASE" -p4 --kbuild -m kbuild -e "$hello" >made
"$SPILE" -r "$RELEASE" -p4 --debug -m debug -e "$hello" >made
[ "$(loaded hello.ko)" -le 60000 ] && [ "$(stat -c %s hello.ko)" -le 150000 ] && echo "hello: at most 60 KB in memory, 150 KB on disk" || { ls -l hello.ko; size hello.ko; }
echo "hello, parts: $(parts hello.ko)"
echo "probes, parts: $(parts probes.ko)"
echo "sources of hello: $(files hello.ko there)"
echo "and not: $(files hello.ko missing)"
echo "hello, families: $(families hello.ko)"
echo "probes, families: $(families probes.ko | sed 's/ *$//')"
echo "arrays: $(arrays probes.ko)"
echo "arrays of hello: $(arrays hello.ko)"
own() { nm "$1" | awk '$NF ~ /^spile_/ { print $NF }' | sort; }
same() { [ "$(own "$1")" = "$(own hello.ko)" ] && echo "the same" || own "$1"; }
echo "by Kbuild: $(same kbuild.ko)"
[ "$(families debug.ko)" = "$(families hello.ko)" ] && [ "$(loaded debug.ko)" -le 100000 ] && echo "with debug information: the same"
