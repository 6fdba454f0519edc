# The text of docs/recording.svg: a recording of a few opens in a guest, printed again.
directory=$(mktemp -d)
cd "$directory" || exit 1
spile --guest --record opens.rec -e 'probe syscall.openat {
	if (pid() == target() || execname() == "ls") printf("%s %s %d\n", execname(), user_string_quoted($filename), $flags)
}' -c 'sh -c "ls / >/dev/null; dd if=/dev/zero of=/dev/null count=1 2>/dev/null"' 2>/dev/null
echo "$ spile replay opens.rec --format ndjson"
spile replay opens.rec --format ndjson | grep '"print"' | tail -n 3
echo
echo "$ spile replay opens.rec --where 'flags == 577' --format csv"
spile replay opens.rec --where 'flags == 577' --format csv | head -n 2
rm -r "$directory"
