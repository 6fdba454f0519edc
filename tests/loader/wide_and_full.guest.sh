# Shows: records of some bytes that are printed as megabytes, on a full disk: the session ends soon, although what is left in its
# rings would be hundreds of gigabytes of text, and says what was not read.
# script: wide -DMAXACTION=10000000 -DMAXACTION_INTERRUPTIBLE=10000000 -DSTP_NO_OVERLOAD wide_and_full.stp
# limit: 90
# stdout: ^status 8, some records not read$

mkdir -p /tmp/full
mount -t tmpfs -o size=30m none /tmp/full
status=0
timeout -k 1 60 spilerun wide.ko -s 4 -o /tmp/full/out 2>err || status=$?
umount /tmp/full
gone wide
grep -q 'No space left on device' err
grep -q '[1-9][0-9]* bytes of records were not read: nothing can be written any more' err
echo "status $status, some records not read"
