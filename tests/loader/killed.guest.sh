# Shows: a loader killed with SIGKILL at any moment leaves nothing that the next one cannot remove or attach to. With an output
# file each line is there exactly once, complete and in order, over many kills; with a pipe none is missing, and possible
# duplicates are reported. Of several loaders at once one gets the module.
# script: steady steady.stp
# limit: 400
# stdout: ^on the way in: 15 kills, nothing left$
# stdout: ^file: 15 kills, [1-9][0-9]* lines, each once$
# stdout: ^pipe: 6 kills, none missing, repeated lines announced$
# stdout: ^at once: one of 5, 6 6 6 6$

# a_while MOST: sleeps up to that many milliseconds.
a_while() { sleep "$(awk -v seed="$(hexdump -n 4 -e '"%u"' /dev/urandom)" -v most="$1" 'BEGIN { srand(seed); printf "%.6f", rand() * most / 1000 }')"; }

# grows FILE: waits until the file grows: then its writer is running, and handles signals.
grows() {
	size=$(stat -c %s "$1")
	for tenth in $(seq 200); do
		[ "$(stat -c %s "$1")" = "$size" ] || return 0
		pause 0.1
	done
	echo "$1 does not grow"
	return 1
}

# killed_often TURNS: kills the module's loader and starts another, with the output and options of `loads`.
killed_often() {
	# There is no reader between two loaders, which takes long in a slow guest.
	loads steady.ko -s $((4 * SLOWNESS)) 2>err &
	loader=$!
	armed steady
	for turn in $(seq "$1"); do
		a_while 200
		kill -KILL $loader
		wait $loader || true
		loads -A steady 2>>err &
		loader=$!
		pause 0.1
	done
	grows log
	kill -INT $loader
	wait $loader
}

for turn in $(seq 15); do
	spilerun steady.ko >/dev/null 2>&1 &
	loader=$!
	a_while 150
	kill -KILL $loader
	wait $loader || true
	spilerun -d '*'
	gone steady
done
echo "on the way in: 15 kills, nothing left"

loads() { exec spilerun --keep --append -o log "$@"; }
killed_often 15
gone steady
if grep 'records were lost\|may be repeated' err; then exit 1; fi
grep -v '^line [0-9]* x\{80,\}$\|^ready$\|^written [0-9]*$' log >odd || true
[ ! -s odd ] || { head -n 3 odd; exit 1; }
sed -n 's/^line \([0-9]*\) .*/\1/p' log >numbers
written=$(sed -n 's/^written //p' log)
seq "$written" | cmp - numbers
echo "file: 15 kills, $written lines, each once"

mkfifo pipe
cat pipe >log &
reader=$!
exec 9>pipe
loads() { exec spilerun --keep "$@" >&9; }
killed_often 6
exec 9>&-
wait $reader
gone steady
sed -n 's/^line \([0-9]*\) x\{80,\}$/\1/p' log | sort -n >numbers
sort -n -u numbers >once
written=$(sed -n 's/^written //p' log)
seq "$written" | cmp - once
twice=$(($(wc -l <numbers) - $(wc -l <once)))
announced=$(sed -n 's/.*the next \([0-9]*\) lines may be repeated$/\1/p' err | awk '{ sum += $1 } END { print sum + 0 }')
[ "$twice" -le "$announced" ] || { echo "twice $twice, announced $announced"; exit 1; }
echo "pipe: 6 kills, none missing, repeated lines announced"

for number in 1 2 3 4 5; do
	(status=0; spilerun steady.ko -T 3 >/dev/null 2>err.$number || status=$?; echo $status >status.$number) &
done
wait
echo "at once: one of 5, $(cat status.* | grep -v '^0$' | sort | tr '\n' ' ' | sed 's/ $//')"
gone steady
