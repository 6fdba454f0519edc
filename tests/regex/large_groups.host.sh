# Shows: a pattern that is too large for its groups to be recorded is refused where they may be asked for, by way of functions too.
# stdout: ^own 1$
# stdout: ^called 1$
# stdout: ^others 0$

refused() { "$SPILE" -r "$RELEASE" -p2 -e "$1" 2>&1 | grep -c 'E0135' || true; }
large='"(a|b)*a(a|b){10}x"'
echo "own $(refused "probe begin { if (\"a\" =~ $large) println(matched(0)) }")"
echo "called $(refused "function fits(s) { return s =~ $large } function asked() { return matched(1) } probe begin { if (fits(\"a\")) println(asked()) }")"
echo "others $(refused "function fits(s) { return s =~ $large } probe begin { println(fits(\"a\")) } probe end { if (\"a\" =~ \"(a)\") println(matched(1)) }")"
