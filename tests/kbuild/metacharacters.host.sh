# Shows: text that shells and make(1) would interpret as commands, in the names of directories, scripts, modules and
# releases and in values of options, is not run.
# stdout: ^it would run$
# stdout: ^odd directory and script: 0$
# stdout: ^module: 1, release: 1$
# stdout: ^values: 0 1 [01] 0$
# stdout: ^words of the compiler: 0 1 1 1 1 1$
# stdout: ^remote: 0 <\$\(pwn\);`pwn`>$
# stdout: ^nothing ran$
# limit: 200

mkdir bin
printf '#!/bin/sh\necho ran >>"%s"\n' "$PWD/ran" >bin/pwn
chmod +x bin/pwn
export PATH=$PWD/bin:$COMPILE_ONCE:$PATH ran=$PWD/ran
export SPILE_CACHE_DIR=$PWD/cache
sh -c 'x=$(pwn)'
[ -e ran ] && echo it would run
rm ran
top=$PWD
odd='$(pwn) `pwn`;pwn;|pwn&pwn $(shell pwn) "x'"'y"
mkdir "$odd"
cd "$odd"
echo 'probe begin { println("x") exit() }' >"$odd.stp"
status() { s=0; "$@" >"$top/out" 2>"$top/err" || s=$?; echo $s; }
echo "odd directory and script: $(status "$SPILE" -r "$RELEASE" -p4 -m odd "$odd.stp")" || cat "$top/err"
[ -s odd.ko ] || cat "$top/err"
echo "module: $(status "$SPILE" -r "$RELEASE" -p4 -m 'a;pwn' "$odd.stp"), release: $(status "$SPILE" -r "6;pwn \$(pwn)" -p4 "$odd.stp")"
value() { status "$SPILE" -r "$RELEASE" -p4 -m value "$@" -e 'probe begin { exit() }'; }
echo "values: $(value -D 'X=$(shell pwn)') $(value -D 'X;pwn') $(value -I "$odd") $(value -d '$(pwn);pwn')"
# A value that became a word of its own would make the compiler load a plugin; one with a line break would be a line of C.
printf '#include <stdlib.h>\nint plugin_is_GPL_compatible;\n__attribute__((constructor)) static void run(void) { system("pwn"); }\n' >"$top/plugin.c"
gcc -shared -fPIC -o "$top/plugin.so" "$top/plugin.c"
gcc -fplugin="$top/plugin.so" -c -x c /dev/null -o "$top/plugin.o" 2>/dev/null || true
[ -e "$ran" ] || echo the plugin does not run
rm -f "$ran"
word() { status "$SPILE" -r "$RELEASE" -g -p4 -m word "$@" -e 'function f:long() %{ STAP_RETVALUE = X; %} probe begin { println(f()) exit() }'; }
line='X=1
#include "/etc/passwd"'
echo "words of the compiler: $(word -D X=1) $(word -D "X=1 -fplugin=$top/plugin.so") $(word -D 'X=1 $(shell pwn) `pwn`') $(word -D "$line") \
$(word -D X=1 --tmpdir '$(pwn)') $(word -D X=1 --sign-key '$(pwn)' --sign-cert '|pwn')"
# The remote host's shell splits the command of ssh(1).
cat >"$top/bin/ssh" <<'EOS'
#!/bin/sh
[ "$1" = -- ] && shift 2
case $1 in
uname*) echo "$RELEASE x86_64" ;;
*) exec sh -c "$*" ;;
esac
EOS
printf '#!/bin/sh\nfor word; do echo "<$word>"; done\n' >"$top/bin/spilerun"
chmod 755 "$top"/bin/*
export RELEASE
remote=$(status "$SPILE" --remote one -m far -c '$(pwn);`pwn`' -e 'probe begin { println("x") exit() }')
echo "remote: $remote $(grep '^<\$' "$top/out")"
cd "$top"
[ ! -e ran ] && echo nothing ran
