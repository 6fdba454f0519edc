# Shows: a workaround that only observes and then enforces, without reloading; its scope, limit and expiry; every write is counted
# once.
# script: lu_5642 -g examples/lu_5642/lu_5642.stp
# script: ticks tests/loader/ticks.stp
# modules: lustre
# limit: 90
# stdout: ^observed: Input/output error$
# stdout: ^enforced: Resource temporarily unavailable$
# stdout: ^observed: Input/output error$
# stdout: rewrites: mode observe, rewritten 1, observed 2, expired 0, out of scope 0, limited 0$
# stdout: ^1 of 1 probes armed$
# stdout: "rewrites":."rewritten":1,"observed":2,
# stdout: verdict="rewritten"[}] 1$
# stdout: ^other user: Input/output error$
# stdout: ^this user: Resource temporarily unavailable$
# stdout: ^limited [1-9]
# stdout: ^before: Resource temporarily unavailable$
# stdout: ^after: Input/output error$
# stdout: ^the expired write is counted$
# stdout: ^after enforce: Input/output error, refused 2$
# stdout: ^renewed: Resource temporarily unavailable$
# stdout: ^refused 2 2 9 2 2$
# stderr: ^ERROR: lu_5642 cannot be run in observe mode: its embedded C \(syslog\) may write, .*--harmless-c
# stderr: ^WARNING: writes by embedded C of lu_5642 are not intercepted: syslog$

failure() { su user -c 'getfattr -n user.job /mnt/file' 2>&1 | grep -o 'Input/output error\|Resource temporarily unavailable'; }

begin_with() {
	start_armed lu_5642 'LU-5642 stap started' "$@"
}

mount_lustre
fail_with 5
begin_with --dry-run --harmless-c -M 0.5 --metrics metrics.prom --metrics unix:metrics.sock
[ -S metrics.sock ]
echo "observed: $(failure)"
wait_for lu_5642.err 'REWRITE: observed, not rewritten by getfattr('
grep -q 'uid [0-9]*: return value, register rax from .*-5 to -11 in probe' lu_5642.err
spilerun enforce lu_5642
echo "enforced: $(failure)"
wait_for lu_5642.err 'REWRITE: rewritten by getfattr('
fourth=0
spilerun observe lu_5642 2>refusal || fourth=$?
spilerun status lu_5642 | grep -q 'mode enforce'
spilerun observe lu_5642 --harmless-c
echo "observed: $(failure)"
spilerun status lu_5642
spilerun status lu_5642 --json
spilerun status lu_5642 --prometheus
# -M reports again and again.
until [ "$(grep -c 'rewrites: mode' lu_5642.err)" -gt 1 ]; do pause 0.1; done
stop INT
gone lu_5642
grep -q 'spile_rewrites_total.*verdict="observed"} 2$' metrics.prom
[ ! -e metrics.prom.new ]
[ ! -e metrics.sock ]

begin_with --only uid=54321
echo "other user: $(failure)"
stop INT
begin_with --only "uid=$(id -u user)" --rewrites 1
echo "this user: $(failure)"
for turn in 1 2 3 4 5 6; do failure >>limited; done
spilerun status lu_5642 | sed -n 's/.*\(limited [0-9]*\).*/\1/p'
grep -q Input limited
stop INT

begin_with --expires "$((4 * SLOWNESS))s"
echo "before: $(failure)"
wait_for lu_5642.err 'REWRITE: lu_5642 has expired'
echo "after: $(failure)"
spilerun status lu_5642 | grep -q 'mode expired, rewritten 1, observed 0, expired 1,'
echo the expired write is counted
sixth=0
spilerun enforce lu_5642 2>renewal || sixth=$?
grep -q 'has expired and no longer rewrites: spilerun enforce lu_5642 --expires' renewal
echo "after enforce: $(failure), refused $sixth"
# Setting the clock back does not revive it.
was=$(date +%s)
date -s "@$((was - 3600))" >/dev/null
spilerun status lu_5642 | grep -q 'mode expired'
! spilerun enforce lu_5642 2>/dev/null
date -s "@$was" >/dev/null
spilerun enforce lu_5642 --expires 1h
echo "renewed: $(failure)"
stop INT

first=0 second=0 third=0
spilerun ticks.ko --dry-run 2>/dev/null || first=$?
spilerun lu_5642.ko --only cgroup=no/such/group 2>/dev/null || second=$?
spilerun status no_such_module 2>/dev/null || third=$?
fifth=0
spilerun lu_5642.ko --dry-run 2>refusal || fifth=$?
[ "$(grep -c '' refusal)" = 1 ]
cat refusal lu_5642.err >&2
echo "refused $first $second $third $fourth $fifth"
gone lu_5642
