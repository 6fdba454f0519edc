# Shows: a program of which one user runs as many threads as he can is still watched where root and other users run it; a message says what happened.
# script: shares data_shares.stp
# stdout: ^user 0: 1$
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
start_armed shares begun
abuse turn
su one -c "exec $abuse turn"
su two -c "exec $abuse turn"
kill -KILL $rest
stop
cat shares.out
[ "$(grep -c 'does not watch the data in process .* of which a user other than root .* -x PID' shares.err)" = 1 ] && echo one warning
