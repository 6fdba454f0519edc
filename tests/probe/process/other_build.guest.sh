# Shows: a program of another build than the script was compiled for is not probed, and said; one that is absent likewise.
# script: other user.stp
# run: true
# stdout: ^other build: done$
cp "$(readlink /usr/bin/user_O0)" /tmp/other
path=$(readlink /usr/bin/user)
mv "$path" "$path.kept" && cp /tmp/other "$path"
spilerun other.ko -c true 2>&1 | tee /tmp/said
grep -q 'Build-id mismatch.*is not the file that the script was compiled for' /tmp/said || { echo "no mismatch"; exit 1; }
[ "$(grep -c mismatch /tmp/said)" = 1 ] || { echo "said more than once"; exit 1; }
rm "$path"
spilerun other.ko -c true 2>&1 | tee /tmp/said
grep -q 'is not there' /tmp/said || { echo "absence not said"; exit 1; }
mv "$path.kept" "$path"
spilerun other.ko -c user 2>&1 | grep -q '^add 100$' || { echo "not probed"; exit 1; }
echo "other build: done"
