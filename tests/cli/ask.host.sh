# Shows: `spile ask` lists and searches questions, explains one, prints its script, compiles it with its options,
# refuses invalid ones, and runs one in a guest; a file called ask is a script as before.
# stdout: ^topics 7$
# stdout: ^questions [6-9][0-9]$
# stdout: ^  tcpstates +How long is a connection in each TCP state\? \(a line for each change of state\)$
# stdout: ^  --over TIME +only opens that took at least this long \(otherwise 10ms\)$
# stdout: ^    TIME +COMMAND +PID +TOOK us
# stdout: ^same text$
# stdout: ^spile: ask slow-opens: --over 10: it takes a time
# stdout: ^spile: ask slow-opens: there is no option --ovr: did you mean --over\?
# stdout: ^spile: ask slow-open: .*did you mean slow-opens
# stdout: ^spile: ask libcalls: it looks at one process
# stdout: ^error: the argument '--example' cannot be used with
# stdout: ^wrong: 1 1 1 1 1$
# stdout: ^over is 10000000$
# stdout: ^compiled 5$
# stdout: ^a script of this name$
# stdout: ^ +[0-9]+ +1[0-9]{6} us (clock_)?nanosleep\(
# stdout: ^short calls: 0$
# limit: 120

"$SPILE" ask >list || exit 1
echo "topics $(grep -c '^[A-Z]' list)"
echo "questions $(grep -c '^  [a-z]' list)"
"$SPILE" ask TCP state || exit 1
"$SPILE" ask slow-opens --help || exit 1
"$SPILE" ask slow-opens --print | cmp - "$ROOT/examples/slow_opens.stp" && echo same text

statuses=
wrong() {
	status=0
	"$SPILE" ask "$@" >out 2>&1 || status=$?
	statuses="$statuses $status"
	cat out
}
wrong slow-opens --over 10
wrong slow-opens --ovr 10ms
wrong slow-open -v
wrong libcalls
wrong slow-opens --example
echo "wrong:$statuses"

"$SPILE" ask slow-opens --over 10s -x 1 -r "$RELEASE" -p3 >code.c && grep -q 10000000 code.c && echo over is 10000000
compiled=0
for question in 'threshold --over 500us -p2' 'funccount --function vfs_* -p2' 'function-graph --function vfs_read --depth 2 -c true -p2' \
	'capable --failed -p4 -m capable' 'packet_way --port 22 -p4 -m packets'; do
	set -f
	"$SPILE" ask $question -r "$RELEASE" >/dev/null && compiled=$((compiled + 1))
	set +f
done
echo "compiled $compiled"
[ -s capable.ko ] && [ -s packets.ko ] || exit 1

echo 'probe begin { println("a script of this name") exit() }' >ask
"$SPILE" -p1 ./ask >/dev/null && "$SPILE" --fmt ./ask | grep -o 'a script of this name'

"$SPILE" ask strace --over 100ms -r "$RELEASE" --guest -c 'sleep 1' >ran || exit 1
cat ran
echo "short calls: $(grep -cE '^ +[0-9]+ +[0-9]{1,5} us ' ran)"
