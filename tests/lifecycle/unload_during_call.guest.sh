# Shows: a probed module is not unloaded while a call is inside, and the script can end meanwhile: the call returns unharmed.
# script: lu_5642 -g examples/lu_5642/lu_5642.stp
# modules: lustre
# stdout: ^in use$
# stdout: ^both ended$

mount_lustre
fail_with 5
echo 1500 >/sys/module/lustre/parameters/delay_ms
start lu_5642 'LU-5642 stap started'
as_user getfattr -n user.job /mnt/file >inside 2>&1 &
inside=$!
sleep 0.5
expect 'lustre' rmmod lustre
loaded lustre
echo in use
stop INT
gone lu_5642
wait $inside || true
# The call began while the script was loaded: its result may or may not be rewritten.
grep -E 'Input/output error|Resource temporarily unavailable' inside
echo both ended
