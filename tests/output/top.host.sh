# Shows: `spile top` in terminals of 80x24 and 20x5 (tmux): hits, rates and printed values of a running session; sorting, freezing, filtering,
# a report, the end by q, after which the session is over and the terminal as before. Globals that the script does not print. A probe that
# is switched off has no hits until it is switched on again. Names cannot send escape sequences. A script with a mistake prints its
# message; without a terminal it says what to use. A closed terminal ends the session.
# stdout: ^shown: probe, value, output, keys$
# stdout: ^sorted by hits$
# stdout: ^only vfs_write: 1 0$
# stdout: ^switched off: no more hits, the other one has more$
# stdout: ^switched on: more hits$
# stdout: ^globals: a number, an element, an average, a text; the probe that prints them: 0$
# stdout: ^frozen: the same$
# stdout: ^help: shown$
# stdout: ^small: 5 lines of at most 20$
# stdout: ^report: written, 1 of vfs_read$
# stdout: ^after q: status 0$
# stdout: ^closed: no session$
# stdout: ^mistake: did you mean println, status 1$
# stdout: ^no terminal: .*it needs a terminal.*status 1$
# absent: panicked
# limit: 500

server=top
. "$ROOT/tests/output/screen.sh"
cat >script.stp <<'END'
global reads
global writes, by_name, sizes, last
probe kernel.function("vfs_read") { reads[execname()]++ }
probe kernel.function("vfs_write") {
	if (execname() == "nobody") println(writes, last)
	writes++
	by_name[execname(), 1]++
	sizes[execname()] <<< 4
	last = "text of " . execname()
}
probe timer.ms(100) { foreach (n in reads- limit 3) printf("%s %d\n", n, reads[n]) println("\x1b[31mred") }
END
start() {
	tmux new-session -d -x 80 -y 24 "$1; echo \"status \$?\"; sleep 1000"
}
# settle COMMAND: waits until its output is the same twice. The terminal shows half of what is being drawn, for a moment.
settle() {
	for turn in $(seq 120); do
		last=$("$@")
		sleep 0.3
		[ "$("$@")" != "$last" ] || return 0
	done
	return 1
}
rows() {
	screen
	echo "$(grep -c '^kernel.*vfs_wri' screen) $(grep -c '^kernel.*vfs_rea' screen)"
}
start "TERM=xterm $SPILE top -r $RELEASE --guest script.stp -c 'sh -c \"while :; do ls / >/dev/null; done\"'"
until_shows '^reads\[n\] ' || exit 1
until_shows 'vfs_wri.* [1-9][0-9.k]* ' || exit 1
until_shows 'red$' || exit 1
grep -q '^probe .*hits/s' screen && grep -q '\\x1b\[31mred' screen && grep -q '^q quit' screen && echo 'shown: probe, value, output, keys'
tmux send-keys s
until_shows 'sorted by hits' && echo 'sorted by hits'
tmux send-keys f
until_shows '^filter: _' || exit 1
tmux send-keys -l vfs_wri
tmux send-keys Enter
until_shows '^only vfs_wri' 'vfs_rea' && settle rows && echo "only vfs_write: $(rows)"
tmux send-keys d
until_shows '^kernel.*vfs_wri.* off ' || exit 1
tmux send-keys Escape
until_shows '^kernel.*vfs_rea' || exit 1
has_no_more vfs_wri vfs_rea && echo 'switched off: no more hits, the other one has more'
before=$(hits vfs_wri)
tmux send-keys f
tmux send-keys -l vfs_wri
tmux send-keys Enter
until_shows '^only vfs_wri' || exit 1
tmux send-keys d
has_more vfs_wri "$before" && echo 'switched on: more hits'
tmux send-keys Escape
until_shows 'vfs_rea' || exit 1
tmux resize-window -x 80 -y 60
until_shows '^writes  *[1-9]' || exit 1
# Which process has written most depends on the machine.
until_shows '^by_name [^ ][^ ]* 1 ' || exit 1
until_shows '^sizes @avg [^ ][^ ]* .* 4 ' || exit 1
until_shows '^last .*text of' &&
	echo "globals: a number, an element, an average, a text; the probe that prints them: $(grep -c 'timer.us' screen)"
tmux resize-window -x 80 -y 24
tmux send-keys Space
until_shows frozen && settle tmux capture-pane -p || exit 1
tmux capture-pane -p >before
sleep 2
screen
cmp -s before screen && echo 'frozen: the same'
tmux resize-window -x 60 -y 20
until_shows '^script.stp .*frozen .*sorted by hits$' || exit 1
tmux resize-window -x 80 -y 24
until_shows '^script.stp .*frozen .*sorted by hits$' || exit 1
tmux send-keys Space
until_shows running || exit 1
tmux send-keys h
until_shows 'any key closes this' && echo 'help: shown'
tmux send-keys h
until_shows '^q quit' 'any key closes this' || exit 1
tmux resize-window -x 20 -y 5
until_shows '^script.stp' 'reads\[' || exit 1
echo "small: $(wc -l <screen) lines of at most $(LC_ALL=C.UTF-8 wc -L <screen | sed 's/^1*[0-9]$/20/')"
tmux resize-window -x 80 -y 24
tmux send-keys w
until_shows '^written: spile-' && echo "report: written, $(cat spile-*.html | grep -o '<td>kernel.function(&quot;vfs_read' | wc -l) of vfs_read"
tmux send-keys q
until_shows '^status' && echo "after q: $(grep -v '^$' screen)"
process=$(tmux display-message -p '#{pid}')
tmux kill-server
for tenth in $(seq 1200); do
	[ -d "/proc/$process" ] || break
	sleep 0.1
done
start "TERM=xterm $SPILE top -r $RELEASE --guest script.stp -c 'sh -c \"while :; do ls / >/dev/null; done\"'"
until_shows '^reads\[n\] ' || exit 1
session=$(pgrep -f -- "--record - .* --guest script.stp" | while read -r pid; do [ "$(readlink "/proc/$pid/cwd")" = "$PWD" ] && echo "$pid"; done)
tmux kill-server
for tenth in $(seq 1200); do
	[ -n "$session" ] && [ -d "/proc/$session" ] || break
	sleep 0.1
done
[ -n "$session" ] && [ ! -d "/proc/$session" ] && echo 'closed: no session'
start "$SPILE top -r $RELEASE -e 'probe begin { prntln(1) }'"
until_shows '^status' && echo "mistake: $(grep -o 'did you mean println' screen | head -n 1), $(grep '^status' screen)"
status=0
said=$("$SPILE" top script.stp 2>&1 | cat) || status=$?
"$SPILE" top script.stp >out 2>&1 || status=$?
echo "no terminal: $said status $status"
