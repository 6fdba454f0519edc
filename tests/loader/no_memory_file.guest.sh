# Shows: where memfd_create(2) does not exist root still loads modules, and a user is told why he cannot.
# script: ticks ticks.stp
# limit: 60
# stdout: ^root: 0 [1-9][0-9]*$
# stdout: ^a user: 7 .*no memfd_create\(2\) here.*only root can load modules

place=/lib/modules/$(uname -r)/spile
mkdir -p "$place"
cp ticks.ko "$place"
chmod 644 "$place"/*
printf 'spileusr:x:601:usr\n' >>/etc/group
printf 'usr:x:5001:5001::/tmp:/bin/sh\n' >>/etc/passwd
rm -f /usr/bin/suid
cp /usr/bin/spilerun /usr/bin/suid
chmod 4755 /usr/bin/suid
s=0
without spilerun ticks.ko -T 1 >out 2>err || s=$?
echo "root: $s $(grep -c tick out)"
gone ticks
s=0
without su usr -c 'cd /tmp; suid ticks -T 0.2' >out 2>err || s=$?
echo "a user: $s $(cat err)"
gone ticks
