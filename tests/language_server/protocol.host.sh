# Shows: the language server: diagnostics with fixes, completion, hover, signatures, definitions, rename, formatting
# against a kernel, incomplete scripts included; settings; the cost of a change; bad messages, and the end of a session.
# stdout: ^steps: [0-9]+$
# stdout: ^steps: [0-9]+$
# stdout: ^large: checked$
# stdout: ^an index serves$
# stdout: ^no kernel, and a large text: said$
# stdout: ^nothing was written$
# absent: ^the answer is
# limit: 180

DIR=$(dirname "$0") && [ -f "$DIR/kernel.talk" ] || DIR="$ROOT/tests/language_server"
# Fills the cache by the compiler, because the server itself writes none.
"$SPILE" -r "$RELEASE" -p2 -e 'probe kernel.function("vfs_read") { println($file->f_path->dentry) }' >/dev/null || exit 1
"$SPILE" -r "$RELEASE" -l 'kernel.trace("sched:*")' >/dev/null || exit 1
mkdir -p own && cat >own/mine.stp <<'END'
/** Twice as much. */
function twice_of_mine:long (value:long) { return 2 * value }
END
OWN=$PWD/own && export OWN
touch before && sleep 0.1
"$XTASK" converse "$DIR/kernel.talk" || exit 1
"$XTASK" converse "$DIR/lifecycle.talk" || exit 1
# A script of 202 lines: a change costs a small part of what looking at the kernel has cost (11 to 17 ms, docs/editors.md).
{
	echo 'start { "release": "$RELEASE" }'
	echo 'open large.stp'
	echo '| global count, sizes, last'
	for number in $(seq 25); do
		set -- vfs_read vfs_write vfs_open vfs_fsync vfs_unlink vfs_mkdir vfs_rmdir vfs_statx do_exit wake_up_process
		shift $((number % 10))
		printf '| %s\n' "probe kernel.function(\"$1\")" '{' '  count[execname(), pid()]++' '  if (pid() == target())' \
			'    printf("%s %d\n", execname(), tid())' '  sizes[pid()] <<< gettimeofday_us()' "  last = \"$1 $number\"" '}'
	done
	echo '| probe end { foreach ([n, p] in count-) println(n, p, count[n, p]) println(@count(sizes[1])) println(last) }'
	echo 'diagnostics ^\[\]$'
	echo 'change large.stp println(n, p => prntln(n, p'
	echo 'diagnostics "code":"E0103"'
	echo 'cost 25'
	echo 'change large.stp prntln(n, p => println(n, p'
	echo 'diagnostics ^\[\]$'
	echo 'cost 25'
	echo 'exit 0'
} >large.talk
"$XTASK" converse large.talk >large.out || { cat large.out; exit 1; }
echo "large: checked"
export INDEX=$KERNEL_INDEX
cat >index.talk <<'END'
start { "index": "$INDEX", "release": null }
open a.stp
| probe kernel.function("vfs_rea
| probe kernel.function("vfs_read") { println($nothing) }
diagnostics no variable
at textDocument/completion a.stp function("vfs_rea^
expect "label":"vfs_read"
exit 0
END
"$XTASK" converse index.talk && echo "an index serves"
{
	echo 'start { "release": "9.9.9" }'
	echo 'open a.stp'
	echo '| probe kernel.function("vfs_read") { exit() }'
	echo 'diagnostics "code":"E0501"'
	echo 'open large.stp'
	yes '| # a comment' | head -n 120000
	echo 'diagnostics "code":"E0002"'
	echo 'exit 0'
} >without.talk
"$XTASK" converse without.talk >without.out && echo "no kernel, and a large text: said" || tail -n 3 without.out
# The documents of the conversations are not in a directory of this machine.
[ ! -e /scripts ] && [ -z "$(find own -newer before -type f)" ] && echo "nothing was written"
