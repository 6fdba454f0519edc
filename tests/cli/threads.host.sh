# Shows: a script that needs no debug information is compiled up to its C by one thread: for library scripts that are known, or part of
# the program, no others are started.
# stdout: ^threads: 1, of 1 file that is new: more$
# stdout: ^threads: 1$

export SPILE_CACHE_DIR=$PWD/cache
mkfifo text
# threads OPTIONS...: of a run that waits until its C, which is more than a pipe holds, is read.
threads() {
	"$SPILE" -r "$RELEASE" -p3 "$@" -e 'probe syscall.* { println(argstr) }' >text &
	exec 3<text
	head -c 1 <&3 >/dev/null
	awk '/^Threads:/ { print $2 }' "/proc/$!/status"
	cat <&3 >/dev/null
	wait $!
}
# The first one reads the kernel's debug information.
threads >/dev/null
mkdir library
echo 'function one:long () { return 1 }' >library/one.stp
without=$(threads)
new=$(threads -I library)
[ "$new" -eq 1 ] || new=more
echo "threads: $without, of 1 file that is new: $new"
echo "threads: $(threads -I library)"
