# Shows: if ftrace is disabled, function entries cannot be probed: that is reported, the rest of the script runs, and
# nothing is left behind. If it is enabled they can, and it cannot be disabled while they are in use. Newer kernels do not
# allow disabling it at all (7.3: EOPNOTSUPP).
# guest: 5.10 6.1 6.12
# script: entries tests/lifecycle/entries_refused.stp
# stdout: ^error reported$
# stdout: ^only the timer ran$
# stdout: ^ftrace stays enabled$
# stdout: ^both probes ran$

echo 0 >/proc/sys/kernel/ftrace_enabled
spilerun entries.ko >out 2>err
grep -q 'registration error' err && echo error reported
grep -q '^calls: 0, ticks: 1$' out && echo only the timer ran
gone entries
echo 1 >/proc/sys/kernel/ftrace_enabled
spilerun entries.ko -c 'echo 0 >/proc/sys/kernel/ftrace_enabled; cat /etc/hostname; sleep 1' >out 2>err
[ "$(cat /proc/sys/kernel/ftrace_enabled)" = 1 ] && echo ftrace stays enabled
grep -q '^calls: 1, ticks: 1$' out && echo both probes ran
if grep 'registration error' err; then exit 1; fi
gone entries
