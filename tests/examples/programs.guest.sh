# Shows: the examples about programs in user space.
# script: mallocs examples/mallocs.stp
# script: commands examples/commands.stp
# stdout: ^COMMAND +CALLS +BYTES +LARGEST$
# stdout: ^user +[1-9][0-9]* +[0-9]+ +[0-9]+$
# stdout: ^ *[0-9]+ +0 true argument$
# absent: ERROR|WARNING

start_all mallocs commands
user >/dev/null
echo 'true argument' | bash --norc -i >/dev/null 2>&1
kill -INT $loaders
wait $loaders || true
cat mallocs.out commands.out
