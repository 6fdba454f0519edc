# Shows: users above 1000 get EAGAIN for EIO while root still gets EIO; the kernel log has the job; removing the script restores
# everything.
# script: lu_5642 -g examples/lu_5642/lu_5642.stp
# modules: lustre
# dmesg: stap lu_5642: JOBID 4711: getfattr\([0-9]+\) got EIO, changing to EAGAIN \(inode 0x[0-9a-f]+\)
# stdout: ^all as expected$

mount_lustre
start_armed lu_5642 'LU-5642 stap started. Press ^C to exit'
expect 'job-42' as_user getfattr -n user.job /mnt/file

fail_with 5
expect 'Resource temporarily unavailable' as_user SLURM_JOBID=4711 getfattr -n user.job /mnt/file
expect 'Input/output error' getfattr -n user.job /mnt/file
expect 'Input/output error' su service -c 'getfattr -n user.job /mnt/file'
fail_with 2
expect 'No such file or directory' as_user getfattr -n user.job /mnt/file
[ "$(dmesg | grep -c 'JOBID')" = 1 ]

fail_with 5
stop INT
[ "$status" = 0 ]
gone lu_5642
expect 'Input/output error' as_user getfattr -n user.job /mnt/file
[ "$(cat lu_5642.out)" = 'LU-5642 stap started. Press ^C to exit' ]
# On a busy machine disarming takes long enough for a notice.
if grep -v '^NOTICE: interrupted: ' lu_5642.err; then exit 1; fi
echo all as expected
