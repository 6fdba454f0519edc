# A terminal in which `spile top` runs: that of a tmux server by the name $server. Sourced by tests.

export TMUX_TMPDIR=$PWD
unset TMUX
tmux() {
	command tmux -f /dev/null -L "$server" "$@"
}
trap 'tmux kill-server 2>/dev/null' EXIT
# screen: writes what is shown now to the file screen.
screen() {
	tmux capture-pane -p >screen
}
# until_shows PATTERN [NOT]: waits until the screen has it.
until_shows() {
	for tenth in $(seq 1200); do
		screen
		grep -q -- "$1" screen && { [ -z "$2" ] || ! grep -q -- "$2" screen; } && return 0
		sleep 0.1
	done
	echo "never shown: $1"
	cat screen
	return 1
}
# hits PROBE: as they are shown now.
hits() {
	screen
	awk "/^kernel.*$1/ { print \$3 }" screen
}
# has_more PROBE HITS: waits until it has other ones.
has_more() {
	for tenth in $(seq 1200); do
		now=$(hits "$1")
		[ -z "$now" ] || [ "$now" = "$2" ] || return 0
		sleep 0.1
	done
	return 1
}
# has_no_more PROBE OTHER: it has none any more while the other one has, twice. It is switched off through a pipe: the last hits before that
# may be shown later.
has_no_more() {
	for turn in $(seq 60); do
		last=$(hits "$1")
		has_more "$2" "$(hits "$2")" && has_more "$2" "$(hits "$2")" || return 1
		[ -n "$last" ] && [ "$(hits "$1")" = "$last" ] && return 0
	done
	return 1
}
