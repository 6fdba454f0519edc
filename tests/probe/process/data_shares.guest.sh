# Shows: a program of which one user runs as many threads as he can is still watched where root and other users run it; a message says what happened.
# script: shares data_shares.stp
# stdout: ^user 0: 2$
# stdout: ^user 5002: 1$
# stdout: ^one warning$
# absent: ^user 5001|ERROR|debug registers
# limit: 90
add_users one:5001 two:5002
chmod 755 .
abuse=$(readlink -f "$(which abuse)")
su one -c "exec $abuse rest 1100" >rest.out 2>&1 &
rest=$!
wait_for rest.out ready 60
# Root's process comes after all threads of that user, who could have more than a session looks at.
abuse later >later.out 2>&1 &
later=$!
wait_for later.out ready 60
start_armed shares begun
kill -USR1 $later
wait $later
abuse turn
su one -c "exec $abuse turn"
su two -c "exec $abuse turn"
kill -KILL $rest
stop
cat shares.out
[ "$(grep -c 'does not watch the data in process .* of which a user other than root .* -x PID' shares.err)" = 1 ] && echo one warning
