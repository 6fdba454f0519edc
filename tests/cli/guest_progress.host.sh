# Shows: while a guest boots, a terminal shows so, until the script starts; a file gets nothing of it.
# stdout: ^on a terminal: booting a virtual machine ... [0-9]+s, then hello, 0 after it$
# stdout: ^in a file: hello, 0$
# limit: 120

mkdir bin
export SEEN=$PWD/seen PATH=$PWD/bin:$PATH
qemu=$(PATH=${PATH#*:} command -v qemu-system-x86_64)
# However fast this machine is, it boots only after the terminal has shown it.
cat >bin/qemu-system-x86_64 <<END
#!/bin/sh
for tenth in \$(seq 300); do
	[ -e "\$SEEN" ] && ! grep -q 'booting a virtual machine' "\$SEEN" || break
	sleep 0.1
done
exec $qemu "\$@"
END
chmod 755 bin/*
echo 'probe begin { println("hello") exit() }' >script.stp
: >seen
script -qefc "TERM=xterm $SPILE -r $RELEASE --guest script.stp" seen >/dev/null
tr '\r' '\n' <seen | sed 's/\x1b\[[0-9;]*[A-Za-z]//g' >lines
echo "on a terminal: $(grep -o 'booting a virtual machine ... [0-9]*s' lines | tail -n 1), then $(grep -o '^hello' lines), $(sed '1,/^hello/d' lines | grep -c booting) after it"
rm seen
"$SPILE" -r "$RELEASE" --guest script.stp >out 2>&1
echo "in a file: $(cat out), $(grep -c booting out)"
