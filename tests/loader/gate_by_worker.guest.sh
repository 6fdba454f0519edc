# Shows: the gate is set, and RCU waited for, by a worker, not by the process that asks, which may be kept from running.
# script: lu_5642 -g examples/lu_5642/lu_5642.stp
# script: waits gate_by_worker.stp
# modules: lustre
# limit: 120
# stdout: ^observe: 0, enforce: 0$
# stdout: ^waits: kworker ([2-9]|[1-9][0-9]+), spilerun 0$

spilerun lu_5642.ko >out 2>err &
session=$!
armed lu_5642
start_armed waits ready
observe=0 enforce=0
spilerun observe lu_5642 --harmless-c || observe=$?
spilerun enforce lu_5642 || enforce=$?
echo "observe: $observe, enforce: $enforce"
stop
kill -s INT $session
wait $session || true
cat waits.out >&2
echo "waits: kworker $(grep -c '^kworker' waits.out || true), spilerun $(grep -c '^spilerun' waits.out || true)"
gone lu_5642
