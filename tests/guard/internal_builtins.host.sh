# Shows: scripts and library files cannot call what only the compiler calls, with arguments that it has checked.
# stdout: ^11 refused$
# limit: 60

calls='__process_event(1, -1, -1, 0)
__perf_counter(1 << 40)
__loaded_address(1000000, 0, 0)
__program_address(0)
__thread_pointer()
__vector_register(1000)
__value_unknown_at_caller()
__kernel_readable(0, -1)
__procfs_value()
__procfs_set("x")
__procfs_append("x")'
refused=0
while IFS= read -r call; do
  "$SPILE" -r "$RELEASE" -g -p2 -e "probe begin { println($call) }" >out 2>&1 &&
    echo "$call is not refused"
  grep -q "unresolved function .${call%%(*}" out && refused=$((refused + 1))
done <<EOF
$calls
EOF
mkdir tapset
echo 'function forked:long () { return __process_event(1, -1, -1, 0) }' >tapset/forked.stp
"$SPILE" -r "$RELEASE" -I tapset -p2 -e 'probe begin { println(forked()) }' >out 2>&1 && echo "in a library file it is not refused"
echo "$refused refused"
