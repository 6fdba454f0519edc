# Shows: without SLURM_JOBID in the environment the job is empty, and the workaround still works.
# script: lu_5642 -g examples/lu_5642/lu_5642.stp
# modules: lustre
# dmesg: stap lu_5642: JOBID : getfattr\([0-9]+\) got EIO

mount_lustre
start_armed lu_5642 'LU-5642 stap started'
fail_with 5
expect 'Resource temporarily unavailable' su user -c 'unset SLURM_JOBID; getfattr -n user.job /mnt/file'
stop INT
