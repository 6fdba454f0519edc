# Shows: a thread that recurses deeper than the kernel follows returns takes no places for values of others: their returns are seen.
# script: deep deep_recursion.stp
# stdout: ^returned 31$
# absent: WARNING|ERROR

start_armed deep begun
abuse deep 30000 >recursion.log &
recursion=$!
wait_for recursion.log ready 30
for call in $(seq 30); do abuse leaf; done
abuse deep
stop
kill $recursion
cat deep.out deep.err
