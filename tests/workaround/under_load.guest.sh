# Shows: under load from several processes each user's call is rewritten, none is missed.
# script: lu_5642 -g examples/lu_5642/lu_5642.stp
# modules: lustre
# limit: 120
# stdout: ^0 of 200 not rewritten$

mount_lustre
start_armed lu_5642 'LU-5642 stap started'
fail_with 5
for process in 1 2 3 4; do
	su user -c 'for turn in $(seq 50); do getfattr -n user.job /mnt/file; done' >out.$process 2>&1 &
	processes="$processes $!"
done
wait $processes || true # getfattr fails
stop INT
echo "$(cat out.* | grep -c 'Input/output error') of $(cat out.* | grep -c '/mnt/file: user.job') not rewritten"
cat lu_5642.err
