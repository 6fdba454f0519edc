# Shows: every example of the reference manual compiles.
# stdout: ^all compile: [1-9][0-9]*$
# limit: 300

count=0
for script in "$ROOT"/docs/reference/examples/*.stp; do
  "$SPILE" -r "$RELEASE" -p4 -m "reference_$count" "$script" >log 2>&1 || { echo "$script"; cat log; exit 1; }
  count=$((count + 1))
done
echo "all compile: $count"
