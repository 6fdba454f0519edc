# Shows: the test file system serves attributes, to users too, and fails as configured.
# modules: lustre
# stdout: ^user.job="job-42"$
# stdout: ^all as expected$

mount_lustre
getfattr --only-values -n user.job /mnt/file >/dev/null
getfattr -n user.job /mnt/file 2>&1
expect 'job-42' as_user getfattr -n user.job /mnt/file
fail_with 5
expect 'Input/output error' as_user getfattr -n user.job /mnt/file
expect 'Input/output error' getfattr -n user.job /mnt/file
fail_with 11
expect 'Resource temporarily unavailable' getfattr -n user.job /mnt/file
[ "$(cat /sys/module/lustre/parameters/refills)" -ge 5 ]
umount /mnt
rmmod lustre

# The variant is the same code with another build-id.
insmod /root/variant/lustre.ko
mount -t lustre none /mnt
expect 'job-42' getfattr -n user.job /mnt/file
echo all as expected
