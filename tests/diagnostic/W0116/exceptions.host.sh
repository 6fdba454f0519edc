# Shows: returns of a program that catches exceptions have a warning where the function that looks for who catches one is not found,
# once for a program: its name has been removed. Where it is, in a library or in the program, there is none; nor of entries, nor of
# programs that catch none. Returns of that function are not probed.
# stdout: ^hidden: 1$
# stdout: ^several: 1$
# stdout: ^entries: 0$
# stdout: ^library: 0$
# stdout: ^static: 0$
# stdout: ^nothing caught: 0$
# stdout: ^listed: 0$
# stdout: it finds its caller by its return address, and an exception would end the program
# stdout: ^left out: 0$
# stdout: ^entry: 1$

cat >catch.cc <<'EOC'
int risky(int n) { if (n > 2) throw n; return n; }
int other(int n) { return n; }
int main(int count, char **v) { try { return risky(count) + other(count); } catch (int) { return 1; } }
EOC
cat >plain.cc <<'EOC'
int risky(int n) { return n; }
int main(int count, char **v) { return risky(count); }
EOC
g++ -g -O0 -o catch catch.cc
g++ -g -O0 -o plain plain.cc
g++ -static -O0 -o static catch.cc
objcopy -N _Unwind_RaiseException -N _Unwind_Resume -N _Unwind_Resume_or_Rethrow -N _Unwind_ForcedUnwind static hidden
warnings() { "$SPILE" -r "$RELEASE" -p2 -e "$1" 2>&1 | grep -c '^warning\[W0116\]' || true; }
echo "hidden: $(warnings 'global n probe process("./hidden").function("_Z5riskyi").return { n++ }')"
echo "several: $(warnings 'global n probe process("./hidden").function("_Z5riskyi").return { n++ } probe process("./hidden").function("_Z5otheri").return { n++ }')"
echo "entries: $(warnings 'global n probe process("./hidden").function("_Z5riskyi") { n++ }')"
echo "library: $(warnings 'global n probe process("./catch").function("risky").return { n++ }')"
echo "static: $(warnings 'global n probe process("./static").function("_Z5riskyi").return { n++ }')"
echo "nothing caught: $(warnings 'global n probe process("./plain").function("risky").return { n++ }')"
echo "listed: $("$SPILE" -r "$RELEASE" -l 'process("./hidden").function("*").return' 2>&1 | grep -c '^warning.W0116' || true)"
"$SPILE" -r "$RELEASE" -p2 -e 'probe process("./static").function("_Unwind_RaiseException").return { println(1) }' 2>&1 || true
echo "left out: $("$SPILE" -r "$RELEASE" -l 'process("./static").function("_Unwind_*").return' 2>&1 | grep -c '_Unwind_Resume' || true)"
echo "entry: $("$SPILE" -r "$RELEASE" -l 'process("./static").function("_Unwind_RaiseException")' 2>&1 | grep -c '_Unwind_RaiseException' || true)"
