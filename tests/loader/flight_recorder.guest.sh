# Shows: a buffer without a reader: without --overwrite the first records stay, with it the last ones; in both cases the missing
# records are counted exactly.
# script: flood flood.stp
# limit: 60
# stdout: ^first: begins with 1, adds up$
# stdout: ^last: ends with the last, adds up$

# account NAME: printed and lost records add up to those written.
account() {
	lost=$(sed -n 's/^WARNING: \([0-9]*\) records were lost.*/\1/p' err | tail -n 1)
	printed=$(grep -c '^line' out)
	written=$(sed -n 's/^written //p' out)
	[ -n "$lost" ] && [ "$((lost + printed))" -ge "$written" ] && [ "$((lost + printed))" -le "$((written + 2))" ] ||
		{ echo "$1: lost $lost, printed $printed, written $written"; tail -n 3 out err; return 1; }
}

spilerun -L -s 1 flood.ko 2>/dev/null
# It has written all.
handled flood 100
spilerun -A flood -T 0.2 >out 2>err
grep '^line' out | head -n 1 | grep -q '^line 1 '
account first
echo first: begins with 1, adds up

spilerun -L -s 1 --overwrite flood.ko 2>/dev/null
# It has written all.
handled flood 100
spilerun -A flood -T 0.2 >out 2>err
if grep '^line 1 ' out; then exit 1; fi
written=$(sed -n 's/^written //p' out)
grep -q "^line $written " out
account last
echo last: ends with the last, adds up
