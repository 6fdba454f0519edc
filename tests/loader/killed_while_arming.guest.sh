# Shows: a kept session whose loader is killed while it arms the probes has ended; the next loader says so, with a status.
# script: slow killed_while_arming.stp
# limit: 120
# stdout: ^ended$
# stdout: ^status 1 ERROR: the previous loader was killed while it armed the probes, .*start the script again$

start slow began --keep
sleep 1
stop KILL
s=0
spilerun -A slow -T 20 2>err || s=$?
echo "status $s $(grep ERROR err)"
gone slow
