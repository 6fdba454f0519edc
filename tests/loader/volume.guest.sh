# Shows: much output through rotated files, a disk that becomes full in the middle, a reader slower than the writer, and
# a session under load without a reader for a while: missing lines are counted exactly, and no line is torn. 40 MB
# through the files; with SPILE_TEST_MB=1024 in the environment of cargo xtask test it is that many, in a guest with
# more memory, and the session is detached for a minute.
# script: volume volume.stp
# limit: 400
# stdout: ^rotated: [1-9][0-9]* files, [1-9][0-9]* lines, adds up$
# stdout: ^full disk: 8, adds up$
# stdout: ^slow reader: adds up$
# stdout: ^detached: adds up$

# account NAME LEAST: the result of `printed` (complete lines, in order), lines lost in the buffers and lines that could not
# be written add up to those written; at least LEAST of them are missing.
account() {
	# A torn line would differ. What the end probe has written is empty where that is not the last line.
	printed | numbered >counted || { echo "$1: $(cat counted)"; return 1; }
	read -r lines last whole <counted
	lost=$(sed -n 's/^WARNING: \([0-9]*\) records were lost.*/\1/p' err | tail -n 1)
	unwritten=$(sed -n 's/^WARNING: \([0-9]*\) lines that the script printed could not be written/\1/p' err)
	missing=$((${lost:-0} + ${unwritten:-0}))
	# The line of the end probe may be missing too.
	if [ -n "$whole" ]; then least=$whole most=$whole; else least=$last most=$((1 << 40)); fi
	[ "$missing" -ge "$2" ] && [ $((lines + missing)) -ge "$least" ] && [ $((lines + missing)) -le $((most + 1)) ] ||
		{ echo "$1: printed $lines, missing $missing, written $whole"; cat err; return 1; }
}

megabytes=${SPILE_TEST_MB:-40}
status=0
spilerun volume.ko "most=$((megabytes * 4766))" -o big -S 8 2>err || status=$?
[ "$status" = 0 ]
ls big.* | sort -t . -k 2 -n >files
for file in $(cat files); do [ "$(tail -c 1 "$file" | tr '\n' n)" = n ]; done
printed() { cat $(cat files); }
account rotated 0
[ "$lines" -gt 0 ]
echo "rotated: $(wc -l <files) files, $lines lines, adds up"
rm -f big.*

printed() { cat out; }
mkdir small
mount -t tmpfs -o "size=$((megabytes * 3 / 40))m" none small
status=0
spilerun volume.ko "most=$((megabytes * 750))" -o small/out 2>err || status=$?
cp small/out out
umount small
[ "$(tail -c 1 out | tr '\n' n)" = n ]
account 'full disk' 1
gone volume
echo "full disk: $status, adds up"

spilerun -s 1 volume.ko "most=$((megabytes * 1500))" 2>err | (for turn in $(seq 20); do dd bs=16k count=1 2>/dev/null; sleep 0.1; done; cat) >out
account 'slow reader' 1
echo slow reader: adds up

spilerun -L -s 1 volume.ko most=100000000 2>/dev/null
sleep "$((megabytes > 999 ? 60 : 6))"
spilerun -A volume -T 0.5 >out 2>err
account detached 1
gone volume
echo detached: adds up
