# Shows: all code of a module except its init and exit, and two functions that nothing calls
# (kprobe.c, never_called), is in sections that cannot be probed, including parts split off by the
# compiler, and none of it is traced; both ways of building agree.
# absent: ^other code
# stdout: ^fast: [0-9]{3,} functions, elsewhere 0, traced 0, never called 2$
# stdout: ^Kbuild: [0-9]{3,} functions, elsewhere 0, traced 0, never called 2$
cat >probes.stp <<'EOF'
global a, s, n
function f(x) { return x > 0 ? f(x - 1) + %{ 1 %} : 0 }
probe kernel.function("vfs_read").return { a[execname()]++; s <<< f(3); printf("%s %s\n", sprint_backtrace(), $$parms$) }
probe kernel.function("vfs_write") { n++ }
probe end { foreach (k in a) println(k, a[k]); print(@hist_log(s)) }
EOF
look() {
	readelf -SW "$2" | sed -n 's/^ *\[ *\([0-9]*\)\] *\(\.[^ ]*\).*/\1 \2/p' >sections
	# All symbols in executable sections, by the section's flags.
	readelf -SW "$2" | sed -n 's/^ *\[ *\([0-9]*\)\] .* [WAIMS]*X[WAIMS]* .*/\1/p' >code
	readelf -sW "$2" | awk '
		FILENAME == "sections" { section[$1] = $2; next }
		FILENAME == "code" { code[$1] = 1; next }
		$4 == "FUNC" && $7 in code {
			if (section[$7] == ".kprobes.text") covered++
			else if (section[$7] != ".init.text" && section[$7] != ".exit.text" && !($8 ~ /^never_called/ && $3 <= 6)) { elsewhere++; print "elsewhere: " $8 " in " section[$7] >"/dev/stderr" }
		}
		$8 ~ /^never_called/ { never++ }
		/__fentry__|__mcount_loc/ { traced++ }
		END { printf "%s: %d functions, elsewhere %d, traced %d, never called %d\n", how, covered, elsewhere, traced, never }' how="$1" sections code -
	# There is no code without symbols elsewhere either, except for replacement instructions, and for the code that
	# alternatives jump to until they are patched (.altinstr_aux), which is before the module's code runs.
	readelf -SW "$2" | grep ' AX ' | grep -vE '\.(kprobes|init|exit)\.text|\.altinstr_(replacement|aux)|\.spile\.place +PROGBITS +[0-9a-f]+ [0-9a-f]+ 00001[0-9a-f] |\.text +PROGBITS +[0-9a-f]+ [0-9a-f]+ 000000 ' | sed 's/^/other code: /'
}
"$SPILE" -r "$RELEASE" -g -p4 -m fast probes.stp >/dev/null && look fast fast.ko
"$SPILE" -r "$RELEASE" -g -p4 --kbuild -m whole probes.stp >/dev/null && look Kbuild whole.ko
