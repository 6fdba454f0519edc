# Shows: `spile top --remote` shows a session on another host: hits, globals that the script does not print, a probe that is switched off
# and on there, the end by q, after which nothing is left. `--remote` with --record and --format: the same recording as on this host. ssh
# gives the commands to a shell here; spilerun there hands the module to a guest, whose loader runs it.
# stdout: ^recorded: 3 prints, 1 end, the last one x=3$
# stdout: ^as JSON: 3 prints of dd$
# stdout: ^two hosts: .*a recording is of one session: give --remote once, status 1$
# stdout: ^a full disk: .*the output cannot be written: No space left on device.*, status [1-9]$
# stdout: ^pass 2: kernel.function\("vfs_write.*$
# stdout: ^shown: probe, global, output$
# stdout: ^switched off: no more hits, the other one has more$
# stdout: ^switched on: more hits$
# stdout: ^after q: status 0$
# stdout: ^left: 0 directories, no session$
# stdout: ^no host: refused by nobody.*, status 1$
# absent: panicked
# limit: 300

mkdir bin far
export PATH=$PWD/bin:$PATH FAR=$PWD/far
cat >bin/ssh <<'EOS'
#!/bin/sh
# What would be asked cannot be answered where the screen is drawn on.
[ "$1" != -o ] || { [ "$2" = BatchMode=yes ] && shift 2; }
[ "$1 $2" = '-- one' ] || { echo "refused by $2" >&2; exit 255; }
case $3 in
uname*) echo "$RELEASE x86_64" ;;
*) TMPDIR=$FAR exec sh -c "$3" ;;
esac
EOS
# The commands of a session go through a pipe to the guest in which it runs.
cat >bin/spilerun <<'EOS'
#!/bin/sh
case $1 in
enable | disable) echo "$1 $3" >"$FAR/$2.commands"; exit ;;
esac
words=
for word; do
	case $word in
	*.ko) module=$word ;;
	-r) skip=yes ;;
	*) [ -n "$skip" ] && skip= || words="$words '$word'" ;;
	esac
done
name=$(basename "$module" .ko)
mkfifo "$FAR/$name.commands"
exec 7<>"$FAR/$name.commands"
trap 'rm "$FAR/$name.commands"' EXIT
trap 'kill -INT $guest' TERM
SPILE_SESSION_COMMANDS=1 sh -c "exec \"\$SPILE\" --guest \"\$0\" -T 1000 $words" "$module" <&7 7<&- &
guest=$!
wait $guest
status=$?
# A signal ends the first wait.
while kill -0 $guest 2>/dev/null; do
	wait $guest
	status=$?
done
exit $status
EOS
chmod 755 bin/*
export SPILE RELEASE

cat >three.stp <<'END'
global x
probe kernel.function("vfs_write") { if (pid() == target() && $count == 5) { x++ printf("%s x=%d\n", execname(), x) } }
END
run() {
	status=0
	timeout 200 "$SPILE" --remote one "$@" three.stp -c 'dd if=/dev/zero of=/dev/null bs=5 count=3' 2>err || status=$?
}
run --record it
[ $status = 0 ] || cat err
"$SPILE" replay --format ndjson it >lines
echo "recorded: $(grep -c '"kind":"print"' lines) prints, $(grep -c '"kind":"end"' lines) end, the last one $("$SPILE" replay it | tail -n 1 | cut -d ' ' -f 2)"
run --format ndjson -o lines
echo "as JSON: $(grep -c '"kind":"print".*"comm":"dd"' lines) prints of dd"
run --remote two --record both
echo "two hosts: $(head -n 1 err), status $status"
run --record /dev/full
echo "a full disk: $(grep 'cannot be written' err), status $status"
echo "pass 2: $("$SPILE" --remote one -p2 three.stp | grep -o 'kernel.function.*' | head -n 1)"

cat >script.stp <<'END'
global writes
probe kernel.function("vfs_read") { if (execname() == "nobody") println(writes) }
probe kernel.function("vfs_write") { writes++ }
probe timer.ms(100) { println("a line") }
END
server=topremote
. "$ROOT/tests/output/screen.sh"
tmux new-session -d -x 80 -y 40 "TERM=xterm $SPILE top --remote one script.stp -c 'sh -c \"while :; do ls / >/dev/null; done\"'; echo \"status \$?\"; sleep 1000"
until_shows '^kernel.*vfs_wri.* [1-9][0-9.k]* ' || exit 1
until_shows '^writes  *[1-9]' || exit 1
until_shows '^a line' && echo 'shown: probe, global, output'
tmux send-keys f
tmux send-keys -l vfs_wri
tmux send-keys Enter
until_shows '^only vfs_wri' || exit 1
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
tmux send-keys q
until_shows '^status' && echo "after q: $(grep -v '^$' screen)"
# Our spilerun may still be cleaning up.
for tenth in $(seq 300); do
	[ -n "$(ls far)" ] || break
	sleep 0.1
done
echo "left: $(ls far | wc -l) directories, $(pgrep -f "$FAR" >/dev/null || echo no session)"
tmux resize-window -x 100 -y 24
tmux respawn-window -k "$SPILE top --remote nobody script.stp; echo \"status \$?\"; sleep 1000"
until_shows '^status' && echo "no host: $(grep -o 'refused by .*' screen | head -n 1), $(grep '^status' screen)"
