# Shows: without memfd_create(2) root still loads modules, and other users get a message with the reason.
# script: ticks ticks.stp
# limit: 60
# stdout: ^root: 0 [1-9][0-9]*$
# stdout: ^a user: 7 .*no memfd_create\(2\) here.*only root can load modules

approve ticks.ko
printf 'spileusr:x:601:usr\n' >>/etc/group
add_users usr:5001
make_suid
s=0
without spilerun ticks.ko -T 1 >out 2>err || s=$?
echo "root: $s $(grep -c tick out)"
gone ticks
s=0
without su usr -c 'cd /tmp; suid ticks -T 0.2' >out 2>err || s=$?
echo "a user: $s $(cat err)"
gone ticks
