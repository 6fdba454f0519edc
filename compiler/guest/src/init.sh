#!/bin/busybox sh
# Init of the guest: prepares it, runs /spile/script, reports its status to the host, powers off.
#
# Serial ports: ttyS0 the console; ttyS1 the script's standard output, ttyS2 its standard error, raw; ttyS3 control.
# Guest to host on ttyS3: lines "ready", "exit STATUS" and "file NAME BYTES" (then that many bytes).
# `give FILE [NAME]` sends a file at once.
# Host to guest: lines "signal NAME", for all processes of the script, "run COMMAND", beside it, and "done" after "exit" was
# received.
#
# With /spile/receive it is the first part of many guests, whose state is saved while it waits: guest to host "waiting", host to
# guest "files" when files have been put into the region (receiver.rs), or "go", with which the guest goes on, as "resumed".

/bin/busybox --install -s /bin 2>/dev/null
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
chmod 755 /
mkdir -p /dev/shm
mount -t debugfs debugfs /sys/kernel/debug
mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
hostname guest
ip link set lo up

for port in 1 2 3; do
	stty -F /dev/ttyS$port raw -echo
done
exec 5<>/dev/ttyS3

if [ -x /spile/receive ]; then
	region=$(grep -l PCI_ID=1AF4:1110 /sys/bus/pci/devices/*/uevent)
	region=${region%/uevent}
	# Its memory can be read. Not by the file "enable", which is in the kernel's log.
	printf '\2' | dd of="$region/config" bs=1 seek=4 conv=notrunc 2>/dev/null
	while [ "$word" != go ]; do
		echo waiting >&5
		read -r word <&5 || poweroff -f
		/spile/receive <"$region/resource2" | (cd / && cpio -idmu 2>/dev/null) || poweroff -f
	done
	rm /spile/receive
	unset word region
	echo resumed >&5
fi

while read -r module; do
	insmod "/lib/modules/$(uname -r)/$module" || echo "spile: cannot load $module"
done </spile/modules

mkfifo /spile/stdout /spile/stderr
cat /spile/stdout >/dev/ttyS1 &
out=$!
cat /spile/stderr >/dev/ttyS2 &
err=$!

# Answers the host until the guest ends.
(
	echo ready >&5
	while read -r word name <&5; do
		# What was written to the ports has arrived: a tty is not drained by a close when others hold it.
		[ "$word" = done ] && poweroff -f
		[ "$word" = run ] && sh -c "$name" </dev/null
		[ "$word" = signal ] || continue
		while [ ! -s /spile/pid ]; do sleep 0.05; done
		kill -s "$name" -- "-$(cat /spile/pid)" 2>/dev/null
	done
) >/dev/null 2>&1 &

# The script is the leader of its own session and process group, whose id is in /spile/pid before it starts. It is not a
# background job: a shell makes those ignore SIGINT permanently. Its shell survives signals that its commands catch.
cd /root
sh -c 'echo $$ >/spile/pid; exec setsid sh -c "trap : INT TERM HUP; . /spile/script"' \
	</dev/null >/spile/stdout 2>/spile/stderr 5>&-
status=$?

# Background processes of the script may hold its outputs open: close them after a while.
(sleep 3; kill $out $err) 2>/dev/null &
wait $out $err

cd /spile/out
for file in *; do
	[ ! -f "$file" ] || give "$file"
done
echo "exit $status" >&5
# A host that does not answer is gone.
sleep 10
poweroff -f
