# Shows: `.thread.begin` is also for threads that run already when the session starts, once for each, when they next run; not
# for what sleeps, nor for the first thread; and once for each that begins later.
# script: begun_threads begun_threads.stp
# stdout: ^old threads: 3, once in each of two probes, of one process$
# stdout: ^resting: 0, first: 0$
# stdout: ^new threads: 1$
# absent: ERROR|WARNING
mkfifo ready
abuse awake 3 >ready &
old=$!
read -r line <ready
abuse rest 3 >ready &
old="$old $!"
read -r line <ready
while sleep 0.05; do user thread; done >/dev/null 2>&1 &
old="$old $!"
spilerun begun_threads.ko
kill $old
