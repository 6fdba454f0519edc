# Shows: a set-uid spilerun consists of a root part, which is limited to few system calls and which its user cannot
# signal, and a user part, which has permanently dropped root's rights; commands run as the user without restrictions of
# either part; whichever part is killed, the module is removed; with Landlock the user part can only open its outputs
# once the session runs. The one capability that it keeps (CAP_BLOCK_SUSPEND, not effective) keeps debuggers out to its end.
# script: ticks ticks.stp
# script: shell shell.stp
# limit: 200
# stdout: ^spile-root: uid 0 0 0 0, gid 0 0 0 0, groups none, seccomp 2, no new privileges 1$
# stdout: ^spile-guard: uid 0 0 0 0, gid 0 0 0 0, groups none, seccomp 2, no new privileges 1$
# stdout: ^suid: uid 5001 5001 5001 5001, gid 5001 5001 5001 5001, groups (5001 601|601 5001|601), seccomp 0, no new privileges 1, capabilities 0000001000000000 0000000000000000 0000000000000000$
# stdout: ^spile-start: uid 5001 5001 5001 5001, gid 5001 5001 5001 5001, groups (5001 601|601 5001|601), seccomp 0, no new privileges 0, capabilities 0000001000000000 0000000000000000 0000000000000000$
# stdout: ^busyboxparts: uid 5001 5001 5001 5001, gid 5001 5001 5001 5001, groups (5001 601|601 5001|601), seccomp 0, no new privileges 0, capabilities 0000000000000000 0000000000000000 0000000000000000$
# stdout: ^spile-root: environment 1, memory 1, descriptors 1$
# stdout: ^spile-guard: environment 1, memory 1, descriptors 1$
# stdout: ^suid: environment 1, memory 1, descriptors 1$
# stdout: ^spile-start: environment 1, memory 1, descriptors 1$
# stdout: ^spile-start: a line, no device, no module$
# stdout: ^signals to those with root's rights: 1 1$
# stdout: ^command: reads root:, writes elsewhere, status 3: 1$
# stdout: ^killed spile-root: its module is removed, the session reports it, status [1-9]$
# stdout: ^killed suid: its module is removed$
# stdout: ^stopped suid, killed spile-root: its module is removed$
# stdout: ^killed spile-guard: the session continues, and its module is removed$
# stdout: ^killed spile-start: the session continues, and its module is removed$
# stdout: ^all processes are gone$
# stdout: ^outside: (as with Landlock|no Landlock here)$
# stdout: ^a directory with the time in its name: another file of the output$

approve ./*.ko
printf 'spileusr:x:601:usr\n' >>/etc/group
add_users usr:5001
make_suid
mkdir -p /tmp/open /tmp/other && chmod 777 /tmp/open /tmp/other
cd /tmp/open
field() { sed -n "s/^$2:[[:space:]]*//p" "/proc/$1/status" | tr '\t' ' '; }
begin() {
	rm -f mine
	as usr 'suid ticks -o mine' >/dev/null 2>err &
	session=$!
	wait_for mine tick || { cat err; exit 1; }
}

# With a name that no other test's command has.
cp /bin/busybox /usr/bin/busyboxparts
as usr 'suid ticks -o mine -c "busyboxparts sleep 1000"' >/dev/null 2>err &
session=$!
wait_for mine tick || { cat err; exit 1; }
for tenth in $(seq 50); do [ -n "$(named busyboxparts)" ] && break; pause 0.1; done
groups_of() { groups=$(field "$1" Groups | sed "s/ *$//"); echo "${groups:-none}"; }
ids() { echo "$1: uid $(field "$2" Uid), gid $(field "$2" Gid), groups $(groups_of "$2"), seccomp $(field "$2" Seccomp), no new privileges $(field "$2" NoNewPrivs)"; }
for name in spile-root spile-guard; do ids $name "$(named $name)"; done
for name in suid spile-start busyboxparts; do
	process=$(named $name | tail -n 1)
	echo "$(ids $name "$process"), capabilities $(field "$process" CapPrm) $(field "$process" CapEff) $(field "$process" CapInh)"
done
# What a debugger reads: /proc asks the same question as ptrace(2) does.
for name in spile-root spile-guard suid spile-start; do
	process=$(named $name | tail -n 1)
	environment=$(status usr "cat /proc/$process/environ")
	memory=$(status usr "dd if=/proc/$process/mem of=/dev/null count=0")
	echo "$name: environment $environment, memory $memory, descriptors $(status usr "ls /proc/$process/fd/")"
done
# It has the caller's rights, so it must hold nothing that the caller could not get.
held=$(ls -l "/proc/$(named spile-start)/fd" | sed -n 's/.* -> //p' | sort -u | tr '\n' ' ')
case $held in
*/dev/spile* | *memfd:*) echo "spile-start holds $held" ;;
*socket:*) echo 'spile-start: a line, no device, no module' ;;
*) echo "spile-start holds $held" ;;
esac
echo "signals to those with root's rights: $(status usr kill -s STOP "$(named spile-root)") $(status usr kill -s KILL "$(named spile-guard)")"
kill -s INT $(named suid)
wait $session || true
kill "$(named busyboxparts)" 2>/dev/null || true
unloaded ticks

as usr "suid ticks -o mine -c 'head -c 5 /etc/passwd; echo >/tmp/other/written; exit 3'" >/tmp/out 2>err && s=0 || s=$?
[ -e /tmp/other/written ] && grep -q 'exited with status 3' err && echo "command: reads $(cat /tmp/out), writes elsewhere, status 3: $s"
unloaded ticks

begin
kill -s KILL "$(named spile-root)"
s=0
wait $session || s=$?
unloaded ticks
grep -q "root's rights has been killed" err && echo "killed spile-root: its module is removed, the session reports it, status $s"
begin
kill -s KILL $(named suid)
unloaded ticks
echo killed suid: its module is removed
wait $session || true
begin
kill -s STOP $(named suid)
kill -s KILL "$(named spile-root)"
unloaded ticks
echo stopped suid, killed spile-root: its module is removed
wait $session || true
for name in spile-guard spile-start; do
	begin
	kill -s KILL "$(named $name)"
	sleep 0.5
	loaded ticks && [ -n "$(named suid)" ]
	kill -s INT $(named suid)
	wait $session || true
	unloaded ticks
	echo "killed $name: the session continues, and its module is removed"
done
for tenth in $(seq 50); do [ -z "$(named suid)$(named spile-root)$(named spile-guard)$(named spile-start)" ] && break; pause 0.1; done
[ -z "$(named suid)$(named spile-root)$(named spile-guard)$(named spile-start)" ] && echo all processes are gone

# The next output file is a link to a place outside its directory, where the user may write.
ln -s /tmp/other/next log.1
as usr 'suid ticks -o log -S 1' >/dev/null 2>err &
session=$!
wait_for log.0 tick
kill -s USR2 $(named suid)
sleep 1
kill -s INT $(named suid) 2>/dev/null || true
wait $session || true
unloaded ticks
[ -e /sys/kernel/security/lsm ] || mount -t securityfs none /sys/kernel/security
if grep -q landlock /sys/kernel/security/lsm; then
	[ ! -e /tmp/other/next ] && grep -q 'Permission denied' err && echo outside: as with Landlock || { cat err; exit 1; }
else
	[ -e /tmp/other/next ] && echo outside: no Landlock here
fi

# The name of the directory is determined when it is opened.
mkdir -m 777 "day$(date +%Y)"
as usr 'suid ticks -o day%Y/log -S 1' >/dev/null 2>err &
session=$!
wait_for "day$(date +%Y)/log.0" tick || { cat err; exit 1; }
kill -s USR2 $(named suid)
wait_for "day$(date +%Y)/log.1" tick || { cat err; exit 1; }
echo a directory with the time in its name: another file of the output
kill -s INT $(named suid)
wait $session || true
unloaded ticks
