# Shows: hundreds of returns that could not be armed are removed together: the kernel waits for all CPUs some times, and not for each.
# guest: 6.1
# script: many tests/lifecycle/refused_returns.stp
# script: waits tests/lifecycle/waits_for_cpus.stp
# stdout: ^hundreds were refused$
# stdout: ^few waits$

echo 0 >/proc/sys/kernel/ftrace_enabled
# What counts is no entry, which ftrace would serve.
spilerun waits.ko >waits.out 2>waits.err &
loader=$!
armed waits
spilerun many.ko >out 2>err
kill -INT $loader
wait $loader || true
waits=$(sed -n 's/^waits: //p' waits.out)
[ "$(grep -c 'registration error' err)" -gt 300 ] && echo hundreds were refused || head -n 5 err
[ "$waits" -gt 0 ] && [ "$waits" -lt 100 ] && echo few waits || head -n 5 waits.out
gone many
echo 1 >/proc/sys/kernel/ftrace_enabled
