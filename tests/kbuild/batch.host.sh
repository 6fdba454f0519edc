# Shows: two hundred scripts in a row take no longer at the end than at the start, and the cache stays in its bound.
# limit: 300
# stdout: ^modules: 200$
# stdout: ^processor time of the last fifty to the first fifty: below 1\.3$
# stdout: ^over the bound: 0 times$
# stdout: ^runtime built: 1 times$
# stdout: ^left in the temporary directory: 0$

mkdir tmp cache
export TMPDIR=$PWD/tmp SPILE_CACHE_DIR=$PWD/cache SPILE_CACHE_LIMIT=40
over=0 built=0 number=0
: >times
while [ $number -lt 200 ]; do
	number=$((number + 1))
	cat >batch.stp <<EOS
global n, times
probe timer.s(1) { n += $number; times[n] <<< n }
probe syscall.read { if (count > $number) n++ }
probe end { printf("%d of $number\n", n); print(@hist_log(times[$number])) }
EOS
	"$SPILE" -r "$RELEASE" -v -p4 -m "batch_$number" --time-report=json batch.stp >module 2>said || { cat said; exit 1; }
	sed -n 's/.*"cpu_ms":\([0-9.]*\).*/\1/p' said >>times
	grep -q 'runtime: built' said && built=$((built + 1))
	[ "$(du -sm --apparent-size cache | cut -f1)" -gt $SPILE_CACHE_LIMIT ] && over=$((over + 1))
	[ -s "$(cat module)" ] && echo "$number" >>modules
	rm -f "$(cat module)"
done
echo "modules: $(wc -l <modules)"
# The first has built the runtime.
median() { sort -n | sed -n '25p'; }
first=$(sed -n '2,51p' times | median) last=$(tail -n 50 times | median)
echo "processor time of the last fifty to the first fifty: $(awk "BEGIN { ratio = $last / $first; print ratio < 1.3 ? \"below 1.3\" : ratio }")"
echo "over the bound: $over times"
echo "runtime built: $built times"
echo "left in the temporary directory: $(ls -A tmp | wc -l)"
