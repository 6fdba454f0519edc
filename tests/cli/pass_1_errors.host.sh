# Shows: duplicates, errors that do not depend on types, and scripts without end are reported in pass 1.
# stdout: ^parameter: 1$
# stdout: ^global: 1$
# stdout: ^private: 1$
# stdout: ^return: 1$
# stdout: ^counter: 1$
# stdout: ^then: 1$
# stdout: ^guru: 1$
# stdout: ^macro: 1$
# stdout: ^long: 1 reading the script long.stp: more than 8388608 bytes$
# stderr: error\[E0105\]: parameter `a` is declared twice
# stderr: error\[E0109\]: `return` outside a function

refused() {
	status=0
	"$SPILE" -r "$RELEASE" -p1 -e "$2" || status=$?
	echo "$1: $status"
}
refused parameter 'function f(a, a) { return a } probe begin { println(1) }'
refused global 'global a global a probe begin { a = 1 }'
refused private 'private a private global a probe begin { a = 1 }'
refused return 'probe begin { while (1) { return 5 } }'
refused counter 'probe begin { println(@perf("")) }'
refused then '%( 1 == 2 %? a %? b %: probe begin { println(1) } %)'
refused guru '%( guru_mode == 2 %? a %: probe begin { println(1) } %)'
refused macro '@define m(a, a) %( @a %) probe begin { println(1) }'
head -c 8500000 /dev/zero | tr '\0' ';' >long.stp
status=0
"$SPILE" -r "$RELEASE" -p1 long.stp 2>err || status=$?
echo "long: $status $(sed -n 's/^error.*: \(reading .*\)/\1/p' err)"
