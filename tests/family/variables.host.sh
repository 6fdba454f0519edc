# Shows: $$vars$$ at each of 24,000 places in 20 modules takes memory in proportion to the types, not to the places: their
# descriptions are kept once, and functions whose arguments are of the same kinds share one handler.
# family: yes
# limit: 120
# stdout: ^24000 probes$
# stdout: ^handlers: few$
# stdout: ^C: in proportion$
# stdout: ^memory: in proportion$

grep -v 'probe \(begin\|end\)' "$ROOT/tests/family/calls.stp" | sed 's/calls++\|copies++/println($$vars$$)/; /^global/d' >vars.stp
"$SPILE" -r "$RELEASE" $MODULES -v -p3 -m vars vars.stp >vars.c 2>err
sed -n 's/.*analyzed script: \([0-9]* probes\).*/\1/p' err
handlers=$(grep -c '^static void probe_.*)$' vars.c)
[ "$handlers" -gt 0 ] && [ "$handlers" -lt 40 ] && echo 'handlers: few' || echo "handlers: $handlers"
# The table of probes has 1,000 bytes for each.
[ "$(wc -c <vars.c)" -lt 30000000 ] && echo 'C: in proportion' || echo "C: $(wc -c <vars.c)"
# Resident, in kilobytes.
memory=$(sed -n 's/.*translated to C.* using [0-9]*virt\/\([0-9]*\)res.*/\1/p' err)
[ "$memory" -lt 400000 ] && echo 'memory: in proportion' || echo "memory: $memory KB"
