# Shows: a program of another build than the script was compiled for is not probed, which is reported; likewise one that is
# absent, and one that is replaced while the session runs.
# script: other user.stp
# run: true
# stdout: ^other build: done$
cp "$(readlink /usr/bin/user_O0)" /tmp/other
path=$(readlink /usr/bin/user)
mv "$path" "$path.kept" && cp /tmp/other "$path"
spilerun other.ko -c true 2>&1 | tee /tmp/output
grep -q 'Build-id mismatch.*is not the file that the script was compiled for' /tmp/output || { echo "no mismatch"; exit 1; }
[ "$(grep -c mismatch /tmp/output)" = 1 ] || { echo "reported more than once"; exit 1; }
rm "$path"
spilerun other.ko -c true 2>&1 | tee /tmp/output
grep -q 'is not there' /tmp/output || { echo "absence not reported"; exit 1; }
mv "$path.kept" "$path"
spilerun other.ko -c user 2>&1 | grep -q '^add 100$' || { echo "not probed"; exit 1; }
# One that is replaced while the session runs, as an upgrade of its package does.
spilerun other.ko >output 2>errors &
loader=$!
armed other
cp "$path" "$path.kept"
cp /tmp/other "$path.new" && mv "$path.new" "$path"
wait_for errors "has been replaced" 20
kill -INT $loader
wait $loader || true
[ "$(grep -c 'WARNING.*has been replaced: processes that begin from now on run the new file' errors)" = 1 ] || { cat errors; exit 1; }
mv "$path.kept" "$path"
echo "other build: done"
