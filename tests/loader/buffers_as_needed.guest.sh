# Shows: buffers take the memory that the output needs: next to none where only the end probe prints, one CPU's and a little where
# others do. They are as large as ever: one run of a handler fills a CPU's, no record is lost, and another CPU has its own
# after that; also when the loader is killed in between, and when only the end probe prints.
# script: silent -DMAXACTION=1000000 -DMAXACTION_INTERRUPTIBLE=1000000 -DSTP_NO_OVERLOAD buffers_silent.stp
# script: one buffers_one.stp
# script: burst -DMAXACTION=1000000 -DMAXACTION_INTERRUPTIBLE=1000000 -DSTP_NO_OVERLOAD buffers_burst.stp
# limit: 120
# stdout: ^only the end prints: below 1 MB, 25000 lines$
# stdout: ^one probe prints: below 5 MB$
# stdout: ^two CPUs: 50000 lines, each once, none lost; at least 7 MB$
# stdout: ^killed: none lost$

memory() { spilerun status "$1" | sed -n 's/.*skipped, \([0-9]*\) KB$/\1/p'; }

# burst CPU: fills most of its buffer, in one run of a handler.
burst() { taskset -c "$1" sh -c 'echo 25000 >/proc/systemtap/burst/go'; }

# whole COUNT: the lines of `out` are those of that many, each once.
whole() { sed -n 's/^line \([0-9]*\) x\{100\}$/\1/p' out | sort -n >numbers; seq "$1" | cmp - numbers; }

spilerun silent.ko >out 2>err &
loader=$!
armed silent
takes=$(memory silent)
kill -INT $loader
wait $loader
whole 25000 && [ ! -s err ] || { cat err; exit 1; }
[ "$takes" -lt 1024 ] && echo 'only the end prints: below 1 MB, 25000 lines' || echo "only the end prints: $takes KB"

spilerun one.ko >/dev/null &
loader=$!
armed one
takes=$(memory one)
kill -INT $loader
wait $loader
[ "$takes" -lt 5120 ] && echo 'one probe prints: below 5 MB' || echo "one probe prints: $takes KB"

# Nobody reads what the loader writes until both CPUs have printed.
mkfifo pipe
spilerun burst.ko -s 4 >pipe 2>err &
loader=$!
exec 8<pipe
armed burst
burst 0
# The loader adds to the buffers when it waits the next time.
for tenth in $(seq $((50 * PATIENCE))); do
	[ "$(memory burst)" -lt 7000 ] || break
	pause 0.1
done
burst 1
takes=$(memory burst)
cat <&8 >out &
reader=$!
exec 8<&-
kill -INT $loader
wait $loader
wait $reader
whole 50000 && [ ! -s err ] || { cat err; exit 1; }
[ "$takes" -ge 7000 ] && echo 'two CPUs: 50000 lines, each once, none lost; at least 7 MB' || echo "two CPUs: $takes KB"

spilerun --keep burst.ko -s 4 >pipe 2>err &
loader=$!
exec 8<pipe
armed burst
burst 1
kill -KILL $loader
wait $loader || true
burst 0
exec 8<&-
spilerun -A burst -T 0.2 >out 2>err
if grep 'were lost' err; then exit 1; fi
# The first ones were written before the loader was killed: the second burst is all there, and follows the first.
tail -n 25000 out | sed -n 's/^line \([0-9]*\) x\{100\}$/\1/p' >numbers
seq 25001 50000 | cmp - numbers
echo 'killed: none lost'
