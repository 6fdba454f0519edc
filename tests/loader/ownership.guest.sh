# Shows: a session belongs to the user who started it: only root can attach to another's, and commands of the script are run with
# its owner's rights or not at all, not if the owner has set string globals; other users cannot use the device, however they got a
# descriptor; file capabilities are refused.
# script: asks system_commands.stp
# limit: 120
# stdout: ^set by usr: 0, nothing run: .*globals were given other values
# stdout: ^root attaches: nothing run by root: .*the session belongs to another user
# stdout: ^set, but in no command: 0, nobody 5001$
# stdout: ^not set: root runs nothing: .*the session belongs to another user
# stdout: ^others attach: 4 4, end: 4: .*belongs to usr: only that user and root
# stdout: ^usr attaches: nobody 5001$
# stdout: ^refused starts: 6 6 6 6, left behind: 0$
# stdout: ^its user ends it: 0$
# stdout: ^a descriptor of root's: .*Operation not permitted
# stdout: ^calls by another user: 18 of 18 refused$
# stdout: ^file capabilities are refused: 4 4 4: .*make it set-uid root

approve asks.ko
printf 'spileusr:x:601:usr,two\nspilesys:x:602:sys\n' >>/etc/group
add_users usr:5001 sys:5002 two:5003 no:5004
make_suid
mkdir -p /tmp/open && chmod 777 /tmp/open
cd /tmp/open
# In a slow guest a session that was left would end because its user is gone.
su usr -c 'exec sleep 1000' &
present=$!

started=$(status usr "suid -L asks 'who=\$(id -u >/tmp/open/pwned)'")
as usr 'suid -A asks -T 1' >/dev/null 2>/tmp/err
[ ! -e pwned ] && [ ! -e commands ] && echo "set by usr: $started, nothing run: $(grep -m 1 WARNING /tmp/err)"
gone asks
status usr "suid -L asks 'who=\$(id -u >/tmp/open/pwned)'" >/dev/null
spilerun -A asks -T 1 >/dev/null 2>/tmp/err
[ ! -e pwned ] && [ ! -e commands ] && echo "root attaches: nothing run by root: $(grep -m 1 WARNING /tmp/err)"
gone asks

as usr 'suid asks often=7' >/dev/null 2>/tmp/err &
loader=$!
wait_for commands nobody || cat /tmp/err
processes 5001 | xargs -r kill -s INT
s=0
wait $loader || s=$?
echo "set, but in no command: $s, $(head -n 1 commands)"
rm commands
gone asks

status usr 'suid -L asks' >/dev/null
rm /tmp/err
spilerun -A asks >/dev/null 2>/tmp/err &
loader=$!
wait_for /tmp/err 'system()'
kill -s QUIT $loader
wait $loader
[ ! -e commands ] && echo "not set: root runs nothing: $(grep -m 1 WARNING /tmp/err)"
others="$(status two suid -A asks) $(status sys suid -A asks), end: $(status two suid -d asks)"
echo "others attach: $others: $(cat /tmp/err)"
as usr 'suid -A asks' >/dev/null 2>&1 &
loader=$!
wait_for commands nobody
echo "usr attaches: $(head -n 1 commands)"
# Two processes of root: the one that started the session, and the one that reads it.
roots() { grep -lE '^Name:.spile-(root|guard|attend)$' /proc/[0-9]*/status 2>/dev/null | xargs grep -l '^Uid:.0' 2>/dev/null | wc -l; }
before=$(roots)
for attempt in 1 2 3 4; do status two suid asks -T 0.1; done >refusals
sleep 1
echo "refused starts: $(echo $(cat refusals)), left behind: $(($(roots) - before))"
processes 5001 | xargs -r kill -s QUIT
wait $loader || true
echo "its user ends it: $(status usr suid -d asks)"
gone asks

spilerun -L asks.ko 2>/dev/null || spilerun -L "$place/asks.ko" 2>/dev/null
exec 9<>/dev/spile-asks
echo "a descriptor of root's: $(su usr -c 'cat <&9' 2>&1 | tr -d '\000' | head -c 300)"
echo "calls by another user: $(su two -c ioctls)"
exec 9<&-
spilerun -d asks
gone asks

kill $present

mkdir -p /caps && mount -t tmpfs none /caps
cp /usr/bin/spilerun /caps/capable && chmod 755 /caps/capable
# cap_sys_module and cap_dac_override, permitted and effective (struct vfs_cap_data, revision 2).
setfattr -n security.capability -v 0x0100000202000100000000000000000000000000 /caps/capable
cp "$place/asks.ko" mine.ko
refused="$(status no /caps/capable asks -T 0.2) $(status usr /caps/capable ./mine.ko -T 0.2) $(status usr /caps/capable asks -T 0.2)"
gone asks
echo "file capabilities are refused: $refused: $(cat /tmp/err)"
