# The guest part of `cargo xtask demo`. Prints each command before its output, and stops if the output is wrong.
. /root/library.sh

say() { printf '\n%s\n' "$*"; }

# show TEXT COMMAND: prints the command and its output, which must contain TEXT.
show() {
	text=$1
	shift
	echo "  # $*"
	output=$(eval "$*" 2>&1) || true
	echo "$output" | grep -v 'Removing leading' | sed 's/^/  /'
	case $output in
	*"$text"*) ;;
	*) echo "The demonstration stops: '$text' should be there."; exit 1 ;;
	esac
}

say "A file system of type lustre, in kernel $(uname -r). Its server has trouble: reading an attribute fails."
show '' modprobe lustre
show '' mount -t lustre none /mnt
show '' 'echo 5 >/sys/module/lustre/parameters/fail_errno'
show 'Input/output error' getfattr -n user.job /mnt/file
show 'Input/output error' "su user -c 'SLURM_JOBID=4711 getfattr -n user.job /mnt/file'"

say "Programs retry on EAGAIN and give up on EIO. The workaround is loaded:"
echo '  # spilerun lu_5642.ko &'
start lu_5642 'Press ^C to exit'
sed 's/^/  /' lu_5642.out
# Begin probes run before the others are armed.
armed lu_5642
show ': running, ' 'spilerun status lu_5642 | head -n 1'

say "Users (uid > 1000) now get EAGAIN, root still sees the real error:"
show 'Resource temporarily unavailable' "su user -c 'SLURM_JOBID=4711 getfattr -n user.job /mnt/file'"
show 'Input/output error' getfattr -n user.job /mnt/file

say "The kernel log has the job that was helped:"
show 'JOBID 4711: getfattr' 'dmesg | grep lu_5642:'

say "^C takes the workaround out, and everything is as before:"
echo '  # kill -INT %1'
stop INT
[ "$status" = 0 ] || { cat lu_5642.err; echo "spilerun ended with status $status."; exit 1; }
show 'Input/output error' "su user -c 'SLURM_JOBID=4711 getfattr -n user.job /mnt/file'"
show 'not loaded' '[ -d /sys/module/lu_5642 ] && echo still there || echo lu_5642 is not loaded'
show '' 'umount /mnt; rmmod lustre'
! dmesg | grep -E 'WARNING:|BUG:|Oops' || { echo 'The kernel complained.'; exit 1; }
