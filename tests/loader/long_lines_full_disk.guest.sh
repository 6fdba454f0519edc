# Shows: records of a few bytes that are printed as megabytes, on a full disk: the session ends soon, although the rest
# of its rings would be hundreds of gigabytes of text, and reports the unread records; the same after a single
# interruption if something reads it all.
# script: wide -DMAXACTION=10000000 -DMAXACTION_INTERRUPTIBLE=10000000 -DSTP_NO_OVERLOAD long_lines_full_disk.stp
# limit: 90
# stdout: ^status 8, some records not read$
# stdout: ^interrupted once: some hundreds of megabytes, the end is reported$

mkdir -p /tmp/full
mount -t tmpfs -o size=30m none /tmp/full
status=0
timeout -k 1 60 spilerun wide.ko -s 4 -o /tmp/full/out 2>err || status=$?
umount /tmp/full
gone wide
grep -q 'No space left on device' err
grep -q '[1-9][0-9]* bytes of records were not read: nothing can be written any more' err
echo "status $status, some records not read"

spilerun wide.ko -s 4 2>err | wc -c >count &
reader=$!
armed wide
begun=$(date +%s)
kill -s INT $(named spilerun)
wait $reader
gone wide
[ $(($(date +%s) - begun)) -lt $((30 * PATIENCE)) ]
grep -q 'interrupted: [1-9][0-9]* bytes of records were not read, as 256 MB of text' err
[ "$(cat count)" -lt 4000000000 ]
grep -q 'the end of it' err
echo "interrupted once: some hundreds of megabytes, the end is reported"
