# Shows: the memory of open files is limited, and freed. A user who opens as many files as possible takes them neither from
# root nor from the next user.
# script: opened tests/probe/procfs/open_files.stp
# stdout: ^opened 15, refused 5$
# stdout: ^others: [78] opened, root reads, another user opens [1-9]$
# stdout: ^opened again$

start opened begun
armed opened
for number in $(seq 20); do
	sleep 1000 </proc/systemtap/opened/large 2>/dev/null &
	sleepers="$sleepers $!"
done 2>refused
# Who has it open runs the program then, and the others end.
opened=0
for sleeper in $sleepers; do
	for tenth in $(seq $((100 * PATIENCE))); do
		read -r program 2>/dev/null </proc/$sleeper/comm || break
		[ "$program" != sleep ] || { opened=$((opened + 1)); break; }
		! grep -q '^State:.Z' /proc/$sleeper/status 2>/dev/null || break
		pause 0.1
	done
done
echo "opened $opened, refused $(grep -c 'too many\|Too many' refused)"
kill $sleepers 2>/dev/null || true
wait $sleepers 2>/dev/null || true
add_users first:5001 second:5002
# opens USER: prints how often that user can open the file, and keeps it open.
opens() { su "$1" -c 'bash -c "for number in \$(seq 30); do exec {file}</proc/systemtap/opened/shared || break; done 2>/dev/null; echo \$((number - 1)); exec sleep 1000"' >"$1" & holders="${holders:-} $!"; }
opens first
until [ -s first ]; do pause 0.1; done
opens second
until [ -s second ]; do pause 0.1; done
echo "others: $(cat first) opened, root $(cat /proc/systemtap/opened/shared), another user opens $(cat second)"
kill $holders
cat /proc/systemtap/opened/large
stop
gone opened
