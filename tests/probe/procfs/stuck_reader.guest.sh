# Shows: a stuck reader does not delay the end of the session.
# script: stuck tests/probe/procfs/stuck_reader.stp
# stdout: ^the reader waits$
# stdout: ^ended 0, reader killed$
# limit: 60

start stuck begun
armed stuck
load stuck /proc/systemtap/stuck/text &
reader=$!
sleep 2
kill -0 $reader
echo the reader waits
began=$(date +%s)
stop
gone stuck
[ $(($(date +%s) - began)) -lt $((20 * SLOWNESS)) ]
reader_status=0
wait $reader || reader_status=$?
[ $reader_status = 137 ]
grep -q 'process .* was killed' stuck.err
echo "ended $status, reader killed"
