# Shows: what others may wait for is not done by the process of a session's user, who can take all CPU time from it, also while it is
# in the kernel: it places and removes no probes, and a module that is probed is loaded while its begin probes run.
# script: many by_workers.stp
# script: busy -DMAXACTION=100000000 by_workers_begin.stp
# script: seen by_workers_seen.stp
# modules: lustre
# limit: 120
# stdout: ^session: ready, the functions of the kernel by kworker: [1-9][0-9]*, by its process: 0$
# stdout: ^while begin probes run: the module after 0$

approve many.ko busy.ko
printf 'spilesys:x:602:usr\n' >>/etc/group
add_users usr:5001
make_suid
enter_open
modprobe -r lustre
start_seen() {
	cp "$here/seen.ko" .
	start_armed seen ready
}
start_seen
su usr -c 'exec suid many -o many.out' 2>many.err &
session=$!
wait_for many.out ready
armed many
# Its conditions change, and a probe is switched.
sleep 1
su usr -c 'suid disable many 1; suid enable many 1'
kill -s INT $(processes 5001) || cat *.err
wait $session || true
unloaded many
stop
grep '^suid ' seen.out >&2 || true
echo "session: $(head -n 1 many.out), the functions of the kernel by kworker: $(grep -c '^kworker' seen.out), by its process: $(grep -c '^suid ' seen.out || true)"

su usr -c 'exec suid busy -o busy.out' 2>busy.err &
session=$!
wait_for busy.out began
began=$(cut -d. -f1 /proc/uptime)
modprobe lustre
took=$(($(cut -d. -f1 /proc/uptime) - began))
[ $took -ge $((4 * SLOWNESS)) ] || took=0
grep -q ended busy.out && took="$took, and they had ended"
echo "while begin probes run: the module after $took"
kill -s INT $(processes 5001) || cat *.err
wait $session || true
unloaded busy
