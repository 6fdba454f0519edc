# Shows: on the oldest kernel served modules are loaded and unloaded one after the other, with probes of every mechanism, and leave
# nothing behind. There is no debug information: functions are probed by their symbols. The packages are fetched once, into
# target/headers.
# stdout: ^5\.10\.0-
# stdout: ^begin$
# stdout: ^end$
# stdout: ^other begin$
# stdout: ^other end$
# stdout: ^calls 1 reads 1 writes 1 entries 1 exits 1 clocks 1$
# stdout: ^begin again$
# stdout: ^end again$
# stdout: ^modules left: 0$
# limit: 300

. "$ROOT/tests/kbuild/packages.sh"
fetch bullseye cloud || exit
release=$(ls "$kept/bullseye-cloud/lib/modules")
# With a program of the guest.
cp -a "$kept/bullseye-cloud" system || exit
mkdir -p system/usr/bin
cp /usr/bin/bash system/usr/bin/

# build NAME SCRIPT
build() {
	"$SPILE" --sysroot system -r "$release" -w -p4 -m "$1" -e "$2" >$1.log 2>&1 || cat $1.log
}
export SPILE_CACHE_DIR=$PWD/cache PATH=$COMPILE_ONCE:$PATH
build one 'probe begin { println("begin") exit() } probe end { println("end") }'
build other 'probe begin { println("other begin") exit() } probe end { println("other end") }'
build again 'probe begin { println("begin again") exit() } probe end { println("end again") }'
build all '
global reads, by, sizes, began, entries, exits, clocks, calls
probe kprobe.function("vfs_read") { reads++; by[execname()]++ }
probe kprobe.function("vfs_write").return { sizes <<< returnval() }
probe kernel.trace("sys_enter") { entries++; began[tid()] = gettimeofday_ns() }
probe kernel.trace("sys_exit") { exits++; delete began[tid()] }
probe process("/usr/bin/bash").function("parse_and_execute") { calls++ }
probe timer.profile { clocks++ }
probe timer.ms(2000) { exit() }
probe end {
	printf("calls %d reads %d writes %d ", calls > 0, reads > 0 && by["dd"] > 0, @count(sizes) > 0)
	printf("entries %d exits %d clocks %d\n", entries > 0, exits > 0, clocks > 0)
}
probe end(1) { delete began }'
"$XTASK" guest --system system --file one.ko --file other.ko --file again.ko --file all.ko '
	uname -r
	dmesg -c >/dev/null
	spilerun one.ko
	spilerun other.ko
	while :; do dd if=/dev/zero of=/dev/null bs=1 count=1000 2>/dev/null; bash -c ":"; done &
	spilerun all.ko
	kill $!
	spilerun again.ko
	echo "modules left: $(grep -c . /proc/modules)"
	dmesg | grep -vE "out-of-tree module taints|module verification failed|signature and/or required key"' 2>guest.err || cat guest.err
