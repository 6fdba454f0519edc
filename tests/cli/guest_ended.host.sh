# Shows: spile --guest that is killed leaves a directory that the next run removes, and no virtual machine; one whose virtual machine does not
# start leaves none.
# stdout: ^killed: 137, its machine ends$
# stdout: ^then: 1, directories: 0$

mkdir bin tmp
cp -r "$CACHE" cache
export TMPDIR=$PWD/tmp SPILE_CACHE_DIR=$PWD/cache STARTED=$PWD/started PATH=$PWD/bin:$PATH
cat >bin/qemu-system-x86_64 <<'END'
#!/bin/sh
[ "$1" != --version ] || exit 0
echo $$ >>"$STARTED"
exec sleep 1000
END
chmod 755 bin/*
"$SPILE" -r "$RELEASE" -p4 -m hello -e 'probe begin { println("hello") exit() }' >/dev/null
: >started
"$SPILE" --guest hello.ko >out 2>&1 &
spile=$!
for tenth in $(seq 300); do
	[ ! -s started ] || break
	sleep 0.1
done
sleep 0.2
ls tmp | grep -q . || echo 'there is no directory'
kill -s KILL $spile
status=0
wait $spile || status=$?
for tenth in $(seq 50); do
	grep -qs '^State:.[^ZX]' /proc/$(cat started)/status || break
	sleep 0.1
done
! grep -qs '^State:.[^ZX]' /proc/$(cat started)/status && echo "killed: $status, its machine ends"
cat >bin/qemu-system-x86_64 <<'END'
#!/bin/sh
exit 1
END
status=0
"$SPILE" --guest hello.ko >out 2>&1 || status=$?
echo "then: $status, directories: $(ls tmp | wc -l)"
