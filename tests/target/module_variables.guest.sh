# Shows: variables of a module, also static and per-CPU ones, from its functions and from anywhere, agree with those that the
# module prints; they are written in guru mode, absent while it is not loaded, and found again at another address.
# script: variables -g tests/target/module_variables.stp
# stdout: ^begin: cannot be read$
# stdout: ^jiffies by their other name$
# stdout: ^loaded: refills 0, fail_errno 0$
# stdout: ^two reads: refills 4, fail_errno 0$
# stdout: ^fails: refills 5, fail_errno 5$
# stdout: ^gone: cannot be read$
# stdout: ^back: refills 2, fail_errno 0$
# stdout: ^on all CPUs: 5$
# stdout: ^shown by the module: 5$
# absent: not counted|jiffies are wrong

# An earlier test may have left it loaded.
umount /mnt 2>/dev/null || true
rmmod lustre 2>/dev/null || true
start variables jiffies
files=/proc/systemtap/variables
armed variables
show() { echo "$1" >$files/show; }
# getfattr asks for the size, and then for the value.
job() { taskset "$1" getfattr -n user.job /mnt/file 2>&1; }
modprobe lustre
show loaded
mount -t lustre none /mnt
job 1 >/dev/null
job 2 >/dev/null
show 'two reads'
echo 5 >$files/set
[ "$(cat /sys/module/lustre/parameters/fail_errno)" = 5 ]
job 2 | grep -q 'Input/output error'
show fails
here=$(cat $files/here) refills=$(cat /sys/module/lustre/parameters/refills)
umount /mnt
rmmod lustre
show gone
modprobe fault
modprobe lustre
rmmod fault
mount -t lustre none /mnt
job 1 >/dev/null
show back
umount /mnt
rmmod lustre
stop
cat variables.out
echo "on all CPUs: $here"
echo "shown by the module: $refills"
