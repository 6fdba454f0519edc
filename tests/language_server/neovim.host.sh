# Shows: Neovim, by its own client and editors/vim: the diagnostic of an error, completion, hover, rename, the text of a library file;
# vim's syntax colours every example as the server's tokens say; the tree-sitter grammar parses every example and its corpus.
# stdout: ^diagnostic: unresolved function `prntln`
# stdout: ^fixed by println
# stdout: ^completes vfs_read$
# stdout: ^hover: struct file\* file$
# stdout: ^renamed: 3$
# stdout: ^library: function task_pid
# stdout: ^tokens: [0-9]{4,}$
# stdout: ^corpus: 9$
# stdout: ^parsed: [0-9]{2,}$
# stdout: ^status 0$
# absent: ^wrong:
# limit: 180

export HOME=$PWD XDG_CONFIG_HOME=$PWD XDG_DATA_HOME=$PWD XDG_STATE_HOME=$PWD XDG_CACHE_HOME=$PWD
mkdir -p parser
cc -O1 -shared -fPIC -o parser/systemtap.so -I "$ROOT/editors/tree-sitter-systemtap/src" \
	"$ROOT/editors/tree-sitter-systemtap/src/parser.c" || exit 1
cat >script.stp <<'END'
global reads
probe kernel.function("vfs_read") {
  reads[execname()]++
  println($file->f_flags, task_pid(task_current()))
}
probe end { foreach (name in reads) prntln(name) }
END
status=0
timeout 150 nvim --headless --clean -n -u NONE -i NONE \
	--cmd "set runtimepath^=$ROOT/editors/vim" -c "luafile $ROOT/tests/language_server/neovim.lua" script.stp 2>&1 || status=$?
echo "status $status"
