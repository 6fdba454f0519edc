# Shows: whatever qemu writes to its standard error does not stop it; if it dies, spile shows the end of it.
# stdout: ^much of it: hello$
# stdout: ^status 1$
# stdout: ^when it dies: 1$
# limit: 120

mkdir bin
export PATH=$PWD/bin:$PATH
qemu=$(PATH=${PATH#*:} command -v qemu-system-x86_64)
cat >bin/qemu-system-x86_64 <<END
#!/bin/sh
[ "\$1" = --version ] || head -c 200000 /dev/zero | tr '\0' x >&2
exec $qemu "\$@"
END
chmod 755 bin/*
echo 'probe begin { println("hello") exit() }' >script.stp
echo "much of it: $("$SPILE" -r "$RELEASE" --guest script.stp 2>&1)"

cat >bin/qemu-system-x86_64 <<END
#!/bin/sh
[ "\$1" = --version ] && exec $qemu "\$@"
$qemu "\$@" &
sleep 2
echo 'cannot allocate the guest memory' >&2
kill -9 \$!
END
echo 'probe timer.s(100) { exit() }' >script.stp
"$SPILE" -r "$RELEASE" --guest script.stp >out 2>&1 || echo "status $?"
echo "when it dies: $(grep -c 'cannot allocate the guest memory' out)"
