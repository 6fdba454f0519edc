# Shows: the memory of open files is limited, and freed.
# script: opened tests/probe/procfs/open_files.stp
# stdout: ^opened 15, refused 5$
# stdout: ^opened again$

start opened begun
armed opened
for number in $(seq 20); do
	sleep 1000 </proc/systemtap/opened/large 2>/dev/null &
	sleepers="$sleepers $!"
done 2>refused
sleep 1
opened=0
for sleeper in $sleepers; do
	! kill -0 $sleeper 2>/dev/null || opened=$((opened + 1))
done
echo "opened $opened, refused $(grep -c 'too many\|Too many' refused)"
kill $sleepers 2>/dev/null || true
wait $sleepers 2>/dev/null || true
cat /proc/systemtap/opened/large
stop
gone opened
