# Shows: SIGINT, SIGTERM and SIGHUP end a script properly: its end probe runs, its module is removed, the status is 0.
# script: waits idle.stp
# stdout: ^INT: ready stopped 0$
# stdout: ^TERM: ready stopped 0$
# stdout: ^HUP: ready stopped 0$

for signal in INT TERM HUP; do
	start waits ready
	loaded waits
	stop $signal
	gone waits
	echo "$signal:" $(cat waits.out) $status
	cat waits.err
done
