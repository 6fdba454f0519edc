# The text of docs/top.svg: a screen of spile top, in tmux.
directory=$(mktemp -d)
export TMUX_TMPDIR="$directory"
unset TMUX
cat >"$directory/top.stp" <<'END'
global reads, sizes
probe kernel.function("vfs_read") { reads[execname()]++; sizes <<< $count }
probe kernel.function("vfs_write") { }
probe timer.s(1) { foreach (n in reads- limit 2) printf("%s has read %d times\n", n, reads[n]) }
END
tmux -f /dev/null -L picture new-session -d -x 80 -y 20 "cd $directory; TERM=xterm spile top --guest top.stp -c 'sh -c \"while :; do ls / >/dev/null; sleep 0.1; done\"'"
for second in $(seq 180); do
	sleep 1
	tmux -L picture capture-pane -p >"$directory/screen"
	grep -q 'running [3-9][0-9] s' "$directory/screen" && break
done
cat "$directory/screen"
tmux -L picture send-keys q
sleep 3
tmux -L picture kill-server 2>/dev/null
rm -r "$directory"
