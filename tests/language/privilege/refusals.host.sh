# Shows: with --privilege=stapusr and --unprivileged, the points of everything but processes, and what handlers may see of
# the kernel there, are refused with E0402; what they may see of a process is not; guru mode is refused.
# stdout: ^accepted: 10$
# stdout: ^wrong: none of 31$
# limit: 120

cat >prog.c <<'EOF'
struct item { int n; const char *name; } one = { 1, "x" };
__attribute__((noinline)) int work(struct item *p, int n) { __asm__ volatile("" : : "r"(p) : "memory"); return n + 1; }
int main(int argc, char **argv) { return work(&one, argc) - 2; }
EOF
gcc -g -O2 -o prog prog.c
wrong=
count=0
accepted=0
# passes SCRIPT; refused SCRIPT: E0402.
passes() {
	count=$((count + 1))
	if "$SPILE" -r "$RELEASE" -p2 --privilege=stapusr -e "$1" >out 2>&1; then accepted=$((accepted + 1)); else
		wrong="$wrong $1" && cat out
	fi
}
refused() {
	count=$((count + 1))
	status=0
	"$SPILE" -r "$RELEASE" -p2 --unprivileged -e "$1" >out 2>&1 || status=$?
	[ $status = 1 ] && grep -q '\[E0402\]' out || { wrong="$wrong $1" && cat out; }
}
in_work() { echo "probe process(\"./prog\").function(\"work\") { $1 }"; }

passes "$(in_work 'println($p->n, user_string($p->name), $p$$, $$vars, execname(), pid(), uid())')"
passes "$(in_work 'println(user_string_utf16($p->name), user_string_utf32($p->name), user_string_quoted_utf16($p->name))')"
passes "$(in_work 'print_ubacktrace() println(ubacktrace(), usymname(uaddr()), register("rdi"), addr())')"
passes 'probe process("./prog").function("work").return { println($return, @entry($n), @entry($p->name$)) }'
passes 'probe process("./prog").begin, process("./prog").end, process("./prog").thread.begin { println(pid()) }'
passes 'probe process("./prog").syscall { println($syscall, $arg1) }'
passes 'probe process("./prog").syscall.return { println($syscall, $return) }'
passes 'probe process("./prog").statement("work@*:2"), process("./prog").function("main").call { println(tid()) }'
passes '%( systemtap_privilege == "stapusr" %? probe begin { exit() } %: bad %)'
passes 'probe begin { println(is_myproc()) exit() }'

refused 'probe kernel.function("vfs_read") { exit() }'
refused 'probe kernel.trace("sched_switch") { exit() }'
refused 'probe syscall.open { exit() }'
refused 'probe kernel.function("vfs_read").return { exit() }'
refused 'probe kprobe.function("vfs_read") { exit() }'
refused 'probe perf.sw.cpu_clock.sample(1000000) { exit() }'
refused 'probe kernel.data("jiffies").write { exit() }'
refused 'probe procfs("x").read { $value = "1" }'
refused 'probe netfilter.ipv4.pre_routing { exit() }'
refused 'probe timer.profile { exit() }'
refused 'probe process("./prog").data("one").write { exit() }'
refused "$(in_work 'println(kernel_string($p))')"
refused "$(in_work 'println(kernel_string_utf16($p))')"
refused "$(in_work 'println(@cast($p, "task_struct", "kernel")->pid)')"
refused "$(in_work 'println(task_current())')"
refused "$(in_work 'println(symname($p))')"
refused "$(in_work 'print_backtrace()')"
refused "$(in_work 'printf("%8m", $p)')"
refused "$(in_work 'println(@var("jiffies", "kernel"))')"
refused 'probe process("./prog").end { println(addr()) }'
refused 'probe timer.s(1) { print_ubacktrace() }'

"$SPILE" -r "$RELEASE" -p2 -g --privilege=stapusr -e 'probe begin { exit() }' 2>&1 | grep -q 'guru mode is for stapdev only' || wrong="$wrong guru"
echo "accepted: $accepted"
echo "wrong: ${wrong:-none of $count}"
