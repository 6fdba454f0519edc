# Shows: without devtmpfs the loader creates its own device nodes, and leaves none behind.
# script: hello tests/lifecycle/hello.stp
# stdout: ^hello goodbye none$

unshare -m sh -c 'mount -t tmpfs none /dev && mknod /dev/null c 1 3 && spilerun hello.ko >out && ls -A /dev >left'
echo $(cat out) $(grep -q spile left && cat left || echo none)
