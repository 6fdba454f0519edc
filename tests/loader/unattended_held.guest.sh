# Shows: the session of a user who is gone ends while a reader of its procfs file, another user's process, gets no CPU time. Nobody
# else waits for that, and the module goes when the reader has.
# script: read ../probe/procfs/starved.stp
# script: ticks ticks.stp
# limit: 240
# stdout: ^ended: yes, others meanwhile: 0 0, -d: 0, then gone$

approve ./*.ko
printf 'spileusr:x:601:usr,two\n' >>/etc/group
add_users usr:5001 two:5003 no:5004
make_suid
enter_open
[ "$(status usr suid -L read)" = 0 ]
: >starved.out
chmod 666 starved.out
su no -c 'exec starved read /proc/systemtap/read/text' >starved.out &
reader=$!
wait_for starved.out starved
ended=no
# Its user's processes are looked for every five seconds.
for tenth in $(seq $((80 * PATIENCE))); do
	spilerun status read 2>/dev/null | grep -q ': running' || { ended=yes; break; }
	pause 0.5
done
[ $ended = yes ] || ps >&2
# What looks again for the session must not have the lock of all.
others="$(soon 9 su two -c 'suid ticks -T 0.1')"
sleep 5
others="$others $(soon 9 su two -c 'suid ticks -T 0.1')"
(sleep 4; kill -KILL $(named starved)) &
s=0
spilerun -d read 2>/dev/null || ! loaded read || s=$?
wait $reader || true
for tenth in $(seq $((300 * PATIENCE))); do loaded read || break; pause 0.1; done
gone read
echo "ended: $ended, others meanwhile: $others, -d: $s, then gone"
