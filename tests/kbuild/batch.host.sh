# Shows: compiling many scripts in a row does not get slower, and the cache stays within its limit. Two hundred scripts with
# SPILE_TEST_ALL, otherwise sixty.
# limit: 300
# stdout: ^modules: all$
# stdout: ^CPU time of the last to the first: below 1\.3$
# stdout: ^over the limit: 0 times$
# stdout: ^runtime built: 1 times$
# stdout: ^left in the temporary directory: 0$

mkdir tmp cache
export TMPDIR=$PWD/tmp SPILE_CACHE_DIR=$PWD/cache SPILE_CACHE_LIMIT=30 PATH=$COMPILE_ONCE:$PATH
over=0 built=0 number=0 all=60 share=25
[ -z "$SPILE_TEST_ALL" ] || all=200 share=50
: >times
while [ $number -lt $all ]; do
	number=$((number + 1))
	cat >batch.stp <<EOS
global n, times
probe timer.s(1) { n += $number; times[n] <<< n }
probe syscall.read { if (count > $number) n++ }
probe end { printf("%d of $number\n", n); print(@hist_log(times[$number])) }
EOS
	"$SPILE" -r "$RELEASE" -v -p4 -m "batch_$number" --time-report=json batch.stp >module 2>err || { cat err; exit 1; }
	sed -n 's/.*"cpu_ms":\([0-9.]*\).*/\1/p' err >>times
	grep -q 'runtime: built' err && built=$((built + 1))
	[ "$(du -sm --apparent-size cache | cut -f1)" -gt $SPILE_CACHE_LIMIT ] && over=$((over + 1))
	[ -s "$(cat module)" ] && echo "$number" >>modules
	rm -f "$(cat module)"
done
echo "modules: $([ "$(wc -l <modules)" = $all ] && echo all || wc -l <modules)"
# The first has built the runtime.
median() { sort -n | sed -n "$((share / 2))p"; }
first=$(sed -n "2,$((share + 1))p" times | median) last=$(tail -n $share times | median)
echo "CPU time of the last to the first: $(awk "BEGIN { ratio = $last / $first; print ratio < 1.3 ? \"below 1.3\" : ratio }")"
echo "over the limit: $over times"
echo "runtime built: $built times"
echo "left in the temporary directory: $(ls -A tmp | wc -l)"
