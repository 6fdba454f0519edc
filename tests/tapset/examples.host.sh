# Shows: the example scripts of Debian's systemtap-doc build, by the command that each names in its .meta file.
# stdout: ^[0-9]+ of [0-9]+ build; at least [0-9]+ have to$
# limit: 900

# The number at the last review: a change that reduces it must say why.
reached=163

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
# one.sh META: its checks, one file in results/ for each that fails: the command and the first error.
directory=$(dirname "$1") name=$(basename "$1" .meta) number=0
sed -n 's/^test_check: *//p' "$1" | while read -r command; do
  number=$((number + 1))
  result=$PWD/results/$name.$number
  if (cd "$directory" && timeout 300 sh -c "$command") >"$result.log" 2>&1 </dev/null; then
    touch "$result.built"
  else
    { echo "$command"; grep -m 1 -A 3 '^error' "$result.log" || tail -n 3 "$result.log"; } >"$result.failed"
  fi
done
EOF
find tree -name '*.meta' | sort | xargs -P "$(nproc)" -n 1 sh one.sh

for failed in results/*.failed; do
  [ -e "$failed" ] || continue
  echo "does not build: $(basename "$failed" .failed)"
  sed 's/^/    /' "$failed"
done
built=$(ls results | grep -c '\.built$')
failed=$(ls results | grep -c '\.failed$' || true)
all=$((built + failed))
echo "$built of $all build; at least $reached have to"
[ "$built" -ge "$reached" ]
