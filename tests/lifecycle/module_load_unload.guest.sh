# Shows: probes in a module that is not loaded yet are armed when it is loaded; a probed module can be unloaded; its probes
# are armed again when it is loaded at another address.
# script: lu_5642 -g examples/lu_5642/lu_5642.stp
# stdout: ^armed on arrival$
# stdout: ^armed again$

start lu_5642 'LU-5642 stap started'
mount_lustre
fail_with 5
expect 'Resource temporarily unavailable' as_user getfattr -n user.job /mnt/file
echo armed on arrival
umount /mnt
rmmod lustre
gone lustre
# Occupies its former address.
modprobe ptlrpc
mount_lustre
fail_with 5
expect 'Resource temporarily unavailable' as_user getfattr -n user.job /mnt/file
echo armed again
umount /mnt
rmmod lustre
rmmod ptlrpc
stop INT
[ "$status" = 0 ]
gone lu_5642
