# Shows: --guest with a prebuilt module reports whether it loads, is armed and unloads; a wrong kernel is refused.
# limit: 200
# stdout: ^counted$
# stdout: ^rehearsal of reads on .*: status 0, 1 of 1 probes armed, left cleanly$
# stdout: ^status 0$
# stdout: ^the reason is reported$
# stdout: ^a pipe that nobody reads: 1 .*writing pipe: a pipe that nobody reads, or a socket$

"$SPILE" -r "$RELEASE" -p4 -m reads -e 'global least = 1, n
probe kernel.function("vfs_read") { n++ } probe end { if (n > least) println("counted") }' >/dev/null
status=0
"$SPILE" --guest reads.ko least=2 2>err || status=$?
grep rehearsal err
echo "status $status"
status=0
"$SPILE" --guest reads.ko least=none 2>err || status=$?
[ "$status" = 2 ] && grep -q 'least holds a number' err && grep -q 'status 2, ended before it was armed' err && echo the reason is reported
mkfifo pipe
status=0
timeout 100 "$SPILE" --guest reads.ko -o pipe 2>err || status=$?
echo "a pipe that nobody reads: $status $(cat err)"
