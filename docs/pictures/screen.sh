# For the pictures of screens: a terminal in tmux, and the files of one picture in $directory.
directory=$(mktemp -d)
export TMUX_TMPDIR="$directory"
unset TMUX

# open_screen COLUMNS LINES COMMAND
open_screen() { tmux -f /dev/null -L picture new-session -d -x "$1" -y "$2" "$3"; }

# wait_for SECONDS PATTERN: until the screen has it; the screen is in $directory/screen.
wait_for() {
	for second in $(seq "$1"); do
		sleep 1
		tmux -L picture capture-pane -p >"$directory/screen"
		grep -q "$2" "$directory/screen" && break
	done
}

keys() { tmux -L picture send-keys "$@"; }

close_screen() {
	tmux -L picture kill-server 2>/dev/null
	rm -r "$directory"
}
