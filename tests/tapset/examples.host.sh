# Shows: the example scripts of Debian's systemtap-doc build, by the command that each names in its .meta file, except those that say
# themselves what they need and lack, and those of examples.exceptions, each of which still has the reason that is given there.
# stdout: ^[0-9]+ of [0-9]+ build, [0-9]+ need what is missing here, 0 fail without a reason$
# limit: 900

examples=/usr/share/systemtap/examples
if ! [ -d $examples ]; then
  echo "systemtap-doc is missing: run \`cargo xtask setup\`"
  exit 1
fi

# Their commands call stap, and read and write in their directory.
cp -rL $examples tree
mkdir -p bin results
cat >bin/stap <<'EOF'
#!/bin/sh
exec "$SPILE" -r "$RELEASE" "$@"
EOF
chmod +x bin/stap
PATH=$PWD/bin:$PATH

cat >one.sh <<'EOF'
# one.sh META: its checks, a file in results/ for each: what fails has the command and the first error, or, where the example says itself
# by test_support what it needs, and that is missing, that command: not where it is the check itself, which would excuse all.
directory=$(dirname "$1") name=$(basename "$1" .meta) number=0
sed -n 's/^test_check: *//p' "$1" | while read -r command; do
  number=$((number + 1))
  result=$PWD/results/$name.$number
  if (cd "$directory" && timeout 300 sh -c "$command") >"$result.log" 2>&1 </dev/null; then
    touch "$result.built"
  elif support=$(sed -n 's/^test_support: *//p' "$1") && [ -n "$support" ] &&
      [ "$support" != "$command" ] && ! (cd "$directory" && timeout 300 sh -c "$support") >/dev/null 2>&1 </dev/null; then
    echo "$support" >"$result.unsupported"
  else
    { echo "$command"; grep -m 1 -A 3 '^error' "$result.log" || tail -n 3 "$result.log"; } >"$result.failed"
  fi
done
EOF
find tree -name '*.meta' | sort | xargs -P "$(nproc)" -n 1 sh one.sh

exceptions=$ROOT/tests/tapset/examples.exceptions unexplained=0
for failed in results/*.failed; do
  [ -e "$failed" ] || continue
  name=$(basename "$failed" .failed) name=${name%.*}
  expected=$(sed -n "s/^$name ; \(.*\) ; .*/\1/p" "$exceptions")
  if [ -z "$expected" ] || ! grep -q "$expected" "$failed"; then
    unexplained=$((unexplained + 1))
    echo "does not build: $name"
    sed 's/^/    /' "$failed"
  fi
done
for name in $(sed -n 's/^\([^#; ]*\) ; .*/\1/p' "$exceptions"); do
  if ! ls results/"$name".*.failed >/dev/null 2>&1; then
    unexplained=$((unexplained + 1))
    echo "builds now, and is no exception any more: $name"
  fi
done
for unsupported in results/*.unsupported; do
  [ ! -e "$unsupported" ] || echo "$(basename "$unsupported" .unsupported) needs: $(cat "$unsupported")"
done
built=$(ls results | grep -c '\.built$')
unsupported=$(ls results | grep -c '\.unsupported$' || true)
failed=$(ls results | grep -c '\.failed$' || true)
echo "$built of $((built + failed)) build, $unsupported need what is missing here, $unexplained fail without a reason"
[ "$unexplained" -eq 0 ]
