# Shows: a script compiled against one build of a module is not armed in another: it is refused if that is loaded already, and not
# armed if it is loaded later; both are reported, and `status` has the reason.
# script: lu_5642 -g examples/lu_5642/lu_5642.stp
# stdout: ^refused$
# stdout: ^  module lustre is not loaded$
# stdout: ^  module lustre is another build: the script was compiled for build-id [0-9a-f]{40} \(.*\), loaded is [0-9a-f]{40}$
# stdout: ^not armed$

insmod /root/variant/lustre.ko
if spilerun lu_5642.ko >out 2>err; then echo 'it ran'; exit 1; fi
grep -i 'build-id' err
gone lu_5642
echo refused
rmmod lustre

start_armed lu_5642 'LU-5642 stap started'
spilerun status lu_5642 | grep 'module lustre'
insmod /root/variant/lustre.ko
mount -t lustre none /mnt
fail_with 5
expect 'Input/output error' as_user getfattr -n user.job /mnt/file
spilerun status lu_5642 | grep 'module lustre'
stop INT
grep -i 'build-id' lu_5642.err
echo not armed
umount /mnt
rmmod lustre
