# Shows: `.begin` of processes that run already when the session starts, in all probes once for each, when they next run; and of
# those that begin later, once too; `process.begin` is for all programs, but not for what sleeps, nor for the loader. Data of
# programs that run already is watched too.
# script: begun begun.stp
# stdout: ^busy: 2 processes, 2 of all programs, at most 1 time$
# stdout: ^user: at most 1 time$
# stdout: ^writes in 2 processes$
# stdout: ^sleep 1000: 0, loader 0$
# absent: ERROR|WARNING
abuse busy >/dev/null &
old=$!
abuse busy >/dev/null &
old="$old $!"
sleep 1000 &
old="$old $!"
while sleep 0.05; do user; done >/dev/null 2>&1 &
old="$old $!"
spilerun begun.ko
kill $old
