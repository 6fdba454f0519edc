# Shows: a user of no group cannot take the loaders' locks, wherever they are, or make others wait. A killed loader's module is removed
# without the lock of all; while root holds those of the names, what removes it waits and then removes it, and -d reports why it does
# not.
# script: ticks ticks.stp
# limit: 120
# stdout: ^a user: nobody waits$
# stdout: ^a user: may not lock it: 1 1$
# stdout: ^leftovers removed$
# stdout: ^removed without the lock of all$
# stdout: ^-d: 6 .*another spilerun has been loading a module
# stdout: ^the killed loader's module is removed when the lock is free$
# stdout: ^read-only: a user may not lock it: 1 1, mode 700 600$

approve ./*.ko
printf 'spileusr:x:601:usr\n' >>/etc/group
add_users usr:5001 no:5004
make_suid
enter_open
# holding USER FILE [FROM]: locks it until it is killed, by its process $holder.
holding() { rm -f held; su "$1" -c "exec hold $2 ${3:-}" >held 2>&1 & holder=$!; wait_for held held; }
killed() { kill -s KILL "$1"; wait "$1" 2>/dev/null || true; }

# Every file that a loader opens and any user may lock.
for file in /sys/class/misc /sys/class /sys/module /sys /run /dev /proc; do
	su no -c "exec hold $file" >/dev/null 2>&1 &
	holders="$holders $!"
done
sleep 1
begin_wait
spilerun "$here/ticks.ko" >out 2>err &
loader=$!
wait_for out tick
not_waited 8
echo a user: nobody waits
echo "a user: may not lock it: $(status no hold /sys/module/kernel/uevent) $(status usr hold /sys/module/kernel/uevent)"
killed $loader
spilerun "$here/ticks.ko" -T 0.1 >out 2>err
grep -q 'removed module ticks' err
gone ticks
echo leftovers removed
for holder in $holders; do killed "$holder"; done

as usr 'suid ticks -o mine' >/dev/null 2>err &
wait_for mine tick
holding root /sys/module/kernel/uevent
kill -s KILL $(processes 5001)
unloaded ticks
killed $holder
echo removed without the lock of all
rm -f mine
as usr 'suid ticks -o mine' >/dev/null 2>err &
wait_for mine tick
# Names begin there.
holding root /sys/module/kernel/uevent $((1 << 49))
kill -s KILL $(processes 5001)
sleep 1
s=0
spilerun -d ticks 2>err || s=$?
echo "-d: $s $(cat err)"
loaded ticks
killed $holder
unloaded ticks
echo "the killed loader's module is removed when the lock is free"

# The file is busy while the system writes to it.
for tenth in $(seq 300); do
	! mount -o remount,ro /sys 2>/dev/null || break
	pause 0.1
done
spilerun "$here/ticks.ko" -T 0.1 >/dev/null
gone ticks
echo "read-only: a user may not lock it: $(status no hold /run/spile) $(status no hold /run/spile/lock), mode $(stat -c %a /run/spile /run/spile/lock | tr '\n' ' ' | sed 's/ $//')"
mount -o remount,rw /sys
