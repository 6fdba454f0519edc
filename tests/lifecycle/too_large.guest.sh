# Shows: sizes that exceed the machine's memory are refused before the OOM killer acts: arrays, the sort buffers of each CPU, and
# the instances of return probes. Nothing is left behind.
# script: arrays tests/lifecycle/too_large.stp
# script: handlers tests/lifecycle/too_large_sorted.stp
# script: returns -w tests/lifecycle/too_large_returns.stp
# stdout: ^arrays 7$
# stdout: ^handlers 7$
# stdout: ^returns 7$
# dmesg: arrays: refused: its arrays need [0-9]+ KiB, and 0 KiB for each of 2 CPUs; [0-9]+ KiB are free
# dmesg: handlers: refused: its handlers need 0 KiB, and [0-9]+ KiB for each of 2 CPUs; [0-9]+ KiB are free
# dmesg: returns: refused: its calls in flight of .return probes \(maxactive, KRETACTIVE\) need [0-9]+ KiB, and 0 KiB for each of 2 CPUs; [0-9]+ KiB are free
# absent: oom-killer|Killed process
# A script may need up to 1 GiB of each CPU (E0504): most machines have that, so take some of this one's.
dd if=/dev/zero of=taken bs=1M count=1200 2>/dev/null
for script in arrays handlers returns; do
	spilerun $script.ko 2>errors && status=0 || status=$?
	echo $script $status
	gone $script
done
rm taken
