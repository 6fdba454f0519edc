# Shows: returns that share a kretprobe share its instances; further calls in flight are counted as missed for their own probe,
# and all instances are free when the calls have returned.
# script: exhausted -DKRETACTIVE=1 tests/probe/many/exhausted.stp
# stdout: ^do_nanosleep: [1-9][0-9]* of 60 missed$
# stdout: ^advice: \.maxactive\(\)$
# stdout: ^afterwards: none missed$

# They sleep until they are killed: on a busy machine the first would end before the last begins.
sleepers() {
	sleeping=
	for one in $(seq 1 $1); do
		sleep 100 &
		sleeping="$sleeping $!"
	done
}
# missed: missed calls of do_nanosleep().
missed() { sed 's/{"point"/\n{/g' exhausted.err | grep do_nanosleep | grep -o '"returns_missed":[0-9]*' | cut -d: -f2; }

start exhausted began --stats=json
armed exhausted
sleepers 60
sleep 1
kill $sleeping
wait $sleeping || true
stop INT
echo "do_nanosleep: $(missed) of 60 missed"
grep -q 'returns missed, see .maxactive()' exhausted.err && echo 'advice: .maxactive()'
# Sequential calls all find a free instance.
start exhausted began --stats=json
armed exhausted
for one in $(seq 1 80); do
	usleep 1000
done
stop INT
[ "$(missed)" = 0 ] && echo 'afterwards: none missed'
