# Shows: a process name with newlines and terminal control characters cannot forge a line in the loader's messages, on
# standard error, in a file, in the kernel's log and in --stats=json; a script's output is unchanged, and escaped with
# --escape.
# script: forged_names -g forged_names.stp
# limit: 60
# status: 0
# stdout: ^messages: 0 forged, 0 bytes that are obeyed$
# stdout: ^WARNING: warned of forger\\n\\x1b\[31mREW$
# stdout: ^WARNING: given to warn\(\)\\nERROR: forged in a script$
# stdout: ^REWRITE: .*forger\\n\\x1b\[31mREW\(
# stdout: ^ERROR: error of forger\\n\\x1b\[31mREW.* near 
# stdout: ^kernel: 0 forged, levels: 4 4$
# stdout: ^as printed: 1, escaped: 0 .*31mREW[|] escaped$
# stdout: ^argument: .*\\x1b\[31m
# stdout: ^options: 0 forged$

# At most 15 bytes.
name=$(printf 'forger\n\033[31mREW')
mkdir -p names
cp /usr/bin/hold "names/$name"
run() {
	spilerun forged_names.ko "$@" >out 2>err &
	loader=$!
	wait_for out ready
	armed forged_names
	"./names/$name" /etc/passwd 2>/dev/null || true
	sleep 0.5
	# Usually the script has ended by its error.
	kill -s INT $loader 2>/dev/null || true
	wait $loader || true
	gone forged_names
}
# obeyed FILE: number of control bytes in it that have an effect on a terminal, except line ends.
obeyed() { tr -d '\n\040-\176\200-\377' <"$1" | wc -c; }
dmesg -c >/dev/null
run --stats=json --expires 1h
echo "messages: $(grep -c '^.\[31m\|^REW$\|^ERROR: forged' err || true) forged, $(obeyed err) bytes that are obeyed"
cat err
# /dev/kmsg has the levels: <facility and level>,...;text
dmesg -r | grep 'printed of\|no level\|31mREW' >log
cat log
echo "kernel: $(grep -vc '^<4>.*\(printed of\|no level\)' log || true) forged, levels: $(sed -n 's/^<\([0-9]\)>.*\(printed of\|no level\).*/\1/p' log | tr '\n' ' ' | sed 's/ $//')"
printed=$(obeyed out)
run --escape=always
cat out
echo "as printed: $printed, escaped: $(obeyed out) $(tr '\n' ' ' <out)escaped"
spilerun "$(printf '\033[31m.ko')" 2>err || true
echo "argument: $(cat err)"
spilerun "--$(printf 'x\nERROR: forged')" ticks 2>err || true
spilerun service "$(printf 'x\nERROR: forged')" 2>>err || true
echo "options: $(grep -c '^ERROR: forged' err) forged"
