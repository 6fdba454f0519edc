# Shows: recordings when something goes wrong: on a full disk the session ends with status 8 and the file keeps its complete beginning; a
# killed loader's is complete up to there; without the option for tasks nothing about them is in the buffers; a terminal, and the file of the
# messages, get none.
# script: ticks ticks.stp
# script: rate rate.stp
# limit: 120
# stdout: ^full disk: status 8, ERROR: the output cannot be written: No space left on device.*; the script is ended$
# stdout: ^full disk: 53504c52, [0-9]{5} bytes$
# stdout: ^killed: 53504c52, [1-9][0-9]* frames$
# stdout: ^attached: 53504c52, no task$
# stdout: ^same file: status 8, ERROR: .*a recording is not text
# stdout: ^commands: 0 in the recording, 1 elsewhere$

hex() {
	head -c 4 "$1" | hexdump -v -e '1/1 "%02x"'
}
frames() {
	grep -ao SPLR "$1" | wc -l
}
mkdir -p /small
mount -t tmpfs -o size=64k none /small
status=0
spilerun rate.ko --record /small/rec -T 20 2>err || status=$?
echo "full disk: status $status, $(grep 'cannot be written:' err)"
echo "full disk: $(hex /small/rec), $(wc -c </small/rec) bytes"

spilerun ticks.ko --record killed 2>err &
for tenth in $(seq 300); do [ -s killed ] && [ "$(frames killed)" -gt 2 ] && break; pause 0.1; done
kill -s KILL $!
wait $! || true
echo "killed: $(hex killed), $(frames killed) frames"
spilerun -d ticks 2>/dev/null || true

spilerun -L ticks.ko >out 2>err || { cat err; exit 1; }
spilerun -A ticks --record attached -T 0.5 2>err || { cat err; exit 1; }
echo "attached: $(hex attached), $(grep -aq swapper attached && echo tasks || echo no task)"

status=0
spilerun ticks.ko --record - -T 0.2 >both 2>&1 || status=$?
echo "same file: status $status, $(grep -a 'a recording is not text' both)"
spilerun ticks.ko --record - -c 'echo from the command' >rec 2>err || { cat err; exit 1; }
echo "commands: $(grep -ac 'from the command' rec) in the recording, $(grep -c '^from the command$' err) elsewhere"
