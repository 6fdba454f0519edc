# Shows: process(PID).library is the library as that process has mapped it, and its probes are for that process only, among others that
# run the same program.
# stdout: ^process is the same: 1$
# stdout: ^hits 20, of others 0$
# absent: ERROR|WARNING
# limit: 60

cat >program.c <<'C'
#include <unistd.h>

int library_twice(int a);

int main(void)
{
	for (int i = 0;; i++) {
		library_twice(i);
		usleep(1000);
	}
}
C
echo 'int library_twice(int a) { return a * 2; }' >library.c
gcc -g -O1 -shared -fPIC -Wl,--build-id=sha1 -o libtwice.so library.c
gcc -g -Wl,--build-id=sha1 -o program program.c -L. -ltwice '-Wl,-rpath,$ORIGIN'
./program &
process=$!
# It has mapped the library once the kernel shows it.
for attempt in 1 2 3 4 5 6 7 8 9 10; do
	grep -q libtwice /proc/$process/maps && break
	sleep 0.1
done
cat >library.stp <<EOS
global hits
probe process($process).library("libtwice.so").function("library_twice") { if (++hits[pid()] == 20) exit() }
probe end {
	foreach (number in hits)
		others += number != $process
	printf("hits %d, of others %d\n", hits[$process], others)
}
EOS
"$SPILE" -r "$RELEASE" -p4 -m library library.stp >/dev/null || { kill $process; exit 1; }
kill $process
# The next process of the guest gets the number after that.
cat >scene.sh <<EOS
echo 4194304 >/proc/sys/kernel/pid_max
$PWD/program &
echo $((process - 1)) >/proc/sys/kernel/ns_last_pid
$PWD/program &
echo "process is the same: \$((\$! == $process))"
spilerun /root/library.ko
EOS
"$XTASK" guest --kernel "$RELEASE" --file library.ko --program "$PWD/program" "$(cat scene.sh)"
