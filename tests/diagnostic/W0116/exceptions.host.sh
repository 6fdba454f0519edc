# Shows: returns of a program that catches exceptions have a warning, once for a program; entries, and programs that catch none, do not.
# stdout: ^returns: 1$
# stdout: ^several: 1$
# stdout: ^entries: 0$
# stdout: ^nothing caught: 0$
# stdout: ^static: 1$
# stdout: ^listed: 0$

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
warnings() { "$SPILE" -r "$RELEASE" -p2 -e "$1" 2>&1 | grep -c '^warning\[W0116\]' || true; }
echo "returns: $(warnings 'global n probe process("./catch").function("risky").return { n++ }')"
echo "several: $(warnings 'global n probe process("./catch").function("risky").return { n++ } probe process("./catch").function("other").return { n++ }')"
echo "entries: $(warnings 'global n probe process("./catch").function("risky") { n++ }')"
echo "nothing caught: $(warnings 'global n probe process("./plain").function("risky").return { n++ }')"
echo "static: $(warnings 'global n probe process("./static").function("_Z5riskyi").return { n++ }')"
echo "listed: $("$SPILE" -r "$RELEASE" -l 'process("./catch").function("*").return' 2>&1 | grep -c '^warning.W0116' || true)"
