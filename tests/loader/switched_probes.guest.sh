# Shows: probes of a running session are switched off and on again, however they are attached: no handler runs, hits that are still counted
# add up, and status tells; the other site of a shared kprobe goes on; one with a condition obeys both. Probes that are not attached, unknown
# ones and other users are refused.
# script: switched_probes tests/loader/switched_probes.stp
# limit: 60
# stdout: ^on: call conditional first function return second tracepoint file$
# stdout: ^one of two: call conditional first function return tracepoint file$
# stdout: ^off: $
# stdout: ^1 of 10 probes armed$
# stdout: ^balance: right$
# stdout: ^no ticks$
# stdout: ^on again: call conditional first function return second tracepoint file$
# stdout: ^10 of 10 probes armed$
# stdout: ^ticks$
# stdout: ^refused: 2 2 yes$
# stderr: ^ERROR: switched_probes has no probe 0 that can be switched: spilerun status switched_probes lists its probes$
# stderr: ^ERROR: switched_probes has no probe 99 that can be switched:

# what: which handlers run for a dd.
what() {
	marks=$(($(ls marks | wc -l) + 1))
	begin=$(($(grep -c '' switched_probes.out) + 1))
	dd if=/dev/zero of=it bs=1 count=1 2>/dev/null
	mkdir "marks/$marks"
	until [ "$(grep -c '^mark' switched_probes.out)" -ge $marks ]; do pause 0.1; done
	ran=$(tail -n "+$begin" switched_probes.out | grep -v '^mark' | sort -u | tr '\n' ' ')
	echo "$ran$(cat /proc/systemtap/switched_probes/it)"
}
ticks() { tail -n 1 switched_probes.out; }
each() { for number in 1 2 3 4 5 6 7 8 9; do spilerun "$1" switched_probes $number || return 1; done; }

mkdir marks
start_armed switched_probes ready
echo "on: $(what)"
spilerun disable switched_probes 4
echo "one of two: $(what)"
each disable
echo "off: $(what)"
spilerun status switched_probes | grep 'probes armed'
spilerun status switched_probes --json >status.json
sums=$(tr '{' '\n' <status.json | sed -n 's/.*"hits":\([0-9]*\),"handled":\([0-9]*\),"filtered":\([0-9]*\),"nested":\([0-9]*\),"locked":\([0-9]*\),"low_stack":\([0-9]*\),"stopped":\([0-9]*\),"sampled":\([0-9]*\),"returns_missed":\([0-9]*\).*/\1 - \2 - \3 - \4 - \5 - \6 - \7 - \8 - \9/p')
wrong=0 rows=0
echo "$sums" >rows
while read -r row; do
	rows=$((rows + 1))
	[ $((row)) = 0 ] || wrong=1
done <rows
[ $wrong = 0 ] && [ $rows = 11 ] && echo 'balance: right'
before=$(ticks)
sleep 0.3
what >/dev/null
[ "$(ticks)" = "$before" ] && echo 'no ticks'
each enable
echo "on again: $(what)"
spilerun status switched_probes | grep 'probes armed'
before=$(ticks)
sleep 0.3
what >/dev/null
[ "$(ticks)" != "$before" ] && echo 'ticks'
first=0 second=0 third=0
spilerun disable switched_probes 0 2>>refusals || first=$?
spilerun disable switched_probes 99 2>>refusals || second=$?
as_user spilerun disable switched_probes 1 2>/dev/null || third=yes
cat refusals >&2
echo "refused: $first $second $third"
stop INT
gone switched_probes
