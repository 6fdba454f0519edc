# Shows: a task at a probe in a program that the session has not seen waits for the tables of its files, so its first stack is whole.
# While the loader is stopped one task waits for as long as it may, and no other.
# script: first -DMAXSTACKWAIT=4000 tests/builtin/ustack/first.stp
# stdout: ^user: main __libc_start_main _start $
# stdout: ^with a stopped loader: one waited$
# absent: ERROR|WARNING

spilerun first.ko >out 2>err &
loader=$!
armed first
user >/dev/null
kill -STOP $loader
began=$(cut -d. -f1 /proc/uptime)
for program in user_fixed user_split user_bare user_stripped; do $program >/dev/null; done
took=$(($(cut -d. -f1 /proc/uptime) - began))
kill -CONT $loader
kill -INT $loader
wait $loader
cat err
awk '$1 == "begin" { name = $2; next } name == "user" && / : (main|__libc_start_main|_start)/ { sub(/\+0x.*/, "", $3); text = text $3 " " } END { print "user: " text }' out
[ $took -ge 3 ] && [ $took -lt 8 ] && echo "with a stopped loader: one waited" || echo "with a stopped loader: $took s"
