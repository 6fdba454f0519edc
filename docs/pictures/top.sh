# The text of docs/top.svg: a screen of spile top, in tmux.
. "$ROOT/docs/pictures/screen.sh"
cat >"$directory/top.stp" <<'END'
global reads, sizes
probe kernel.function("vfs_read") { reads[execname()]++; sizes <<< $count }
probe kernel.function("vfs_write") { }
probe timer.s(1) { foreach (n in reads- limit 2) printf("%s has read %d times\n", n, reads[n]) }
END
open_screen 80 20 "cd $directory; TERM=xterm spile top --guest top.stp -c 'sh -c \"while :; do ls / >/dev/null; sleep 0.1; done\"'"
wait_for 180 'running [3-9][0-9] s'
cat "$directory/screen"
keys q
sleep 3
close_screen
