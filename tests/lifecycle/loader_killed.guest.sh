# Shows: when the loader is killed the probes are disarmed at once, and the next start removes the module.
# script: lu_5642 -g examples/lu_5642/lu_5642.stp
# script: hello hello.stp
# modules: lustre
# stdout: ^disarmed$
# stdout: ^works again$
# stdout: ^removed by another script$

mount_lustre
fail_with 5
start_armed lu_5642 'LU-5642 stap started'
expect 'Resource temporarily unavailable' as_user getfattr -n user.job /mnt/file
stop KILL
sleep 0.5
expect 'Input/output error' as_user getfattr -n user.job /mnt/file
echo disarmed

# The same script again.
start_armed lu_5642 'LU-5642 stap started'
expect 'Resource temporarily unavailable' as_user getfattr -n user.job /mnt/file
stop INT
gone lu_5642
echo works again

# Another script cleans up, too.
start_armed lu_5642 'LU-5642 stap started'
stop KILL
spilerun hello.ko
gone lu_5642
echo removed by another script
