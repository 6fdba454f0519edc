# Shows: where the event of one thread takes long to make, and what makes it holds the lock of all, other processes of the program begin.
# script: held_counter tests/probe/perf/held_counter.stp
# stdout: ^another one: begins$
# stdout: ^later: counted$
# stderr: ^WARNING: probe perf.* cannot count process [0-9]* \(rc -16\); @perf is 0 there
# limit: 60

parameter() { cat /sys/module/fault/parameters/$1; }
modprobe fault victim=held_counter held=perf_event_create_kernel_counter
abuse busy &
busy=$!
start held_counter begun
for tenth in $(seq $((200 * PATIENCE))); do [ "$(parameter holding)" != 1 ] || break; pause 0.1; done
abuse touch >touched &
for tenth in $(seq $((50 * PATIENCE))); do ! grep -q fine touched || break; pause 0.1; done
grep -q fine touched && echo another one: begins || echo another one: waits
echo 1 >/sys/module/fault/parameters/released
armed held_counter
abuse touch >/dev/null
stop INT
rmmod fault
kill $busy
cat held_counter.err >&2
grep -q '^counted$' held_counter.out && echo later: counted
