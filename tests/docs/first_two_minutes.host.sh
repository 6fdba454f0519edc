# Shows: the commands of README's "The first two minutes", as they are written there, in the order of the page; those that run a script have
# --guest behind them, as the page says (and the kernel of the test). `spile top` is in a terminal (tmux), and ends by q.
# stdout: ^spile ask disk: status 0, biolatency found$
# stdout: ^spile ask opensnoop -T 5: status 0, a head, no error$
# stdout: ^spile ask biolatency --help: status 0, 1 output, 1 next question$
# stdout: ^spile top examples/vfsstat.stp: shown, status 0$
# stdout: ^spile report -o page.html examples/offcputime.stp -c 'sleep 5': status 0, a page with [1-9][0-9]* pictures$
# stdout: ^spile --format ndjson -T 5 -e .*: status 0, [1-9][0-9]* of JSON, 0 others$
# stdout: ^spile --from-bpftrace .*: status 0, and its script compiles$
# stdout: ^7 of 7 commands$
# stdout: ^a mistake: .*did you mean .*function\(string\)
# limit: 300

export TMUX_TMPDIR=$PWD PATH=$PWD/bin:$PATH
unset TMUX
mkdir bin
ln -s "$SPILE" bin/spile
ln -s "$ROOT/examples" examples
sed -n '/^## The first two minutes/,/^## Use it/p' "$ROOT/README.md" >part
grep '^spile ' part | sed 's/  *# .*//' >commands
tmux() {
	command tmux -f /dev/null -L minutes "$@"
}
trap 'tmux kill-server 2>/dev/null' EXIT
screen() {
	for tenth in $(seq 1200); do
		tmux capture-pane -p >screen
		! grep -q -- "$1" screen || return 0
		sleep 0.1
	done
	echo "never shown: $1"
	cat screen
	return 1
}
in_guest() {
	status=0
	eval "$1 -r '$RELEASE' --guest" >out 2>err </dev/null || status=$?
	grep -E 'ERROR|error|panicked' err || true
	echo "$1: status $status, $2"
}
here() {
	status=0
	eval "$1" >out 2>err </dev/null || status=$?
	echo "$1: status $status, $2"
}
count=0
while read -r command; do
	count=$((count + 1))
	case $command in
	'spile ask disk')
		here "$command" "$(eval "$command" | grep -o '^  biolatency' | sed 's/^  //') found"
		;;
	'spile ask opensnoop '*)
		in_guest "$command" "a head, no error"
		grep -q COMMAND out || cat out
		;;
	'spile ask biolatency --help')
		here "$command" "$(eval "$command" >out; grep -c '^ *device ' out | sed 's/^[1-9].*/1/' ) output, $(grep -c 'spile ask biosnoop' out | sed 's/^[1-9].*/1/') next question"
		;;
	'spile top '*)
		tmux new-session -d -x 80 -y 24 "$command -r $RELEASE --guest; echo \"status \$?\"; sleep 1000" 2>tmux.err
		screen '^kernel.*vfs_' && tmux send-keys q && screen '^status' && echo "$command: shown, $(grep '^status' screen)"
		;;
	'spile report '*)
		in_guest "$command" "a page with PICTURES pictures" >line
		sed "s/PICTURES/$(grep -c '<svg' page.html)/" line
		;;
	'spile --format '*)
		in_guest "$command" 'LINES of JSON, OTHERS others' >line
		sed "s/LINES/$(grep -c '^{.*}$' out)/; s/OTHERS/$(grep -vc '^{.*}$' out)/" line
		;;
	'spile --from-bpftrace '*)
		here "$command" "and its script compiles" >line
		spile -r "$RELEASE" -p3 out >/dev/null && cat line
		;;
	*) echo "not tried: $command" ;;
	esac
done <commands
echo "$count of $(sed -n '/^```sh/,/^```$/p' part | grep -c '^[a-z]') commands"
mistake=$(grep -o '`kernel.functon[^`]*`' part | tr -d '`')
echo "a mistake: $(spile -r "$RELEASE" -p2 -e "probe $mistake {}" 2>&1 | tr '\n' ' ')"
