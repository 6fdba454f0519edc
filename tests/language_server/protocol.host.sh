# Shows: the language server: diagnostics with fixes, completion, hover, signatures, definitions, rename, formatting
# against a kernel, incomplete scripts included; settings; the cost of a change; bad messages, and the end of a session.
# stdout: ^steps: [0-9]+$
# stdout: ^steps: [0-9]+$
# stdout: ^an index serves$
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
# The documents of the conversations are not in a directory of this machine.
[ ! -e /scripts ] && [ -z "$(find own -newer before -type f)" ] && echo "nothing was written"
