# Shows: each pass can be printed; -v reports the passes on standard error; the output goes to standard output.
# stdout: ^# parse tree dump$
# stdout: ^# file <input>$
# stdout: ^probe begin
# stdout: ^# functions$
# stdout: ^exit:unknown \(\)$
# stdout: ^# probes$
# stdout: ^begin /\* <- begin \*/$
# stdout: #include "script.h"
# stdout: ^looked\.ko$
# stdout: ^1$
# stdout: spile_guru=no
# stdout: ^listed: used execname:string \(\) cpu:long \(\)$
# stderr: ^Pass 1: parsed user script and [0-9]+ library scripts using .*real ms\.$
# stderr: ^Pass 2: analyzed script: 1 probe, 1 function, 0 embeds, 0 globals
# stderr: ^Pass 3: translated to C
# stderr: ^Pass 4: compiled C into "looked\.ko" in
# stderr: ^Arrays take 126 KiB on 2 CPUs, 687 KiB on 256; each CPU takes up to 33 KiB more as it uses them\.$

# A different script each time, because one that was built before is taken from the cache.
script="probe begin { println(\"x $$ $(date +%s)\") exit() }"
"$SPILE" -r "$RELEASE" -p1 -e "$script"
"$SPILE" -r "$RELEASE" -p2 -e "$script"
"$SPILE" -r "$RELEASE" -p3 -e "$script"
"$SPILE" -r "$RELEASE" -v -p4 -m looked -e "$script"
"$SPILE" -r "$RELEASE" -v -p3 -e 'global a probe kernel.function("vfs_read") { a[tid()]++ }' >counting.c
ls looked.ko | wc -l
grep -a -o 'spile_guru=[a-z]*' looked.ko
# Of the library what the script uses, and no globals that nothing uses.
"$SPILE" -r "$RELEASE" -p2 -e 'global unused, used function f() { return cpu() } probe syscall.execve { used += f() println(execname()) } probe end { println(used) }' >list
echo "listed: $(grep -E '^(unused|argv|argc|used|execname|cpu)' list | sed 's/:long$//' | sort -r | tr '\n' ' ' | sed 's/ $//')"
