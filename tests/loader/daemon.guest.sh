# Shows: with -D the session's processes belong together, whatever happens to the process that was started: while that one is
# stopped, killing the session removes its module and all its processes; if the root part is killed, a stopped background process
# is ended, and the module is removed.
# script: ticks ticks.stp
# limit: 120
# stdout: ^the process that was started is stopped, the session is killed: its module is removed, and spile-root$
# stdout: ^the session is stopped, spile-root is killed: its module is removed, and the session's process$
# stdout: ^ends in order: [0-9][0-9]*, its module is removed$

approve ./*.ko
printf 'spileusr:x:601:usr\n' >>/etc/group
add_users usr:5001
make_suid
mkdir -p /tmp/open && chmod 777 /tmp/open
cd /tmp/open
# alive NAME: numbers of processes that have not ended (a stopped parent does not reap its children). none NAME...: waits
# until there are none.
alive() {
	for process in $(named "$1"); do
		grep -q '^State:.Z' "/proc/$process/status" 2>/dev/null || echo "$process"
	done
}
none() {
	for name; do
		for tenth in $(seq $((150 * PATIENCE))); do [ -n "$(alive "$name")" ] || continue 2; pause 0.1; done
		echo "$name is still there"
		return 1
	done
}
# two NAME: waits until there are two processes of this name.
two() {
	for tenth in $(seq $((100 * PATIENCE))); do [ "$(alive "$1" | wc -l)" -lt 2 ] || return 0; pause 0.1; done
	echo "there are no two of $1"
	return 1
}

# The process waits until its number can be written.
mkfifo full
exec 8<>full
head -c 65536 /dev/zero >&8
su usr -c 'exec suid -D ticks -o mine' >&8 2>err &
su=$!
wait_for mine tick || { cat err; exit 1; }
two suid
parent=$(alive suid | sort -n | head -n 1)
session=$(alive suid | sort -n | tail -n 1)
kill -s STOP "$parent"
kill -s KILL "$session"
unloaded ticks
none spile-root spile-guard
[ "$(alive suid | head -n 1)" = "$parent" ]
echo the process that was started is stopped, the session is killed: its module is removed, and spile-root
kill -s KILL "$parent"
wait $su || true
rm mine

session=$(su usr -c 'suid -D ticks -o mine')
wait_for mine tick
kill -s STOP "$session"
kill -s KILL "$(alive spile-root)"
unloaded ticks
none suid spile-guard
echo "the session is stopped, spile-root is killed: its module is removed, and the session's process"

rm mine
session=$(su usr -c 'suid -D ticks -o mine')
wait_for mine tick
kill -s INT "$session"
unloaded ticks
none suid spile-root spile-guard spile-start
echo "ends in order: $session, its module is removed"
