# Shows: what the machine has no memory for is refused before any process is ended for it: arrays, and what a sorted foreach needs of each CPU.
# script: arrays tests/lifecycle/too_large.stp
# script: handlers tests/lifecycle/too_large_sorted.stp
# stdout: ^arrays 7$
# stdout: ^handlers 7$
# dmesg: arrays: refused: its arrays need [0-9]+ KiB, and 0 KiB for each of 2 CPUs; [0-9]+ KiB are free
# dmesg: handlers: refused: its handlers need 0 KiB, and [0-9]+ KiB for each of 2 CPUs; [0-9]+ KiB are free
# absent: oom-killer|Killed process
for script in arrays handlers; do
	spilerun $script.ko 2>errors && status=0 || status=$?
	echo $script $status
done
