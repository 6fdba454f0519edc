# Shows: twenty scripts run at once: the kernel's per-CPU memory for modules is enough for them.
# script: crowd01 many_sessions.stp
# script: crowd02 many_sessions.stp
# script: crowd03 many_sessions.stp
# script: crowd04 many_sessions.stp
# script: crowd05 many_sessions.stp
# script: crowd06 many_sessions.stp
# script: crowd07 many_sessions.stp
# script: crowd08 many_sessions.stp
# script: crowd09 many_sessions.stp
# script: crowd10 many_sessions.stp
# script: crowd11 many_sessions.stp
# script: crowd12 many_sessions.stp
# script: crowd13 many_sessions.stp
# script: crowd14 many_sessions.stp
# script: crowd15 many_sessions.stp
# script: crowd16 many_sessions.stp
# script: crowd17 many_sessions.stp
# script: crowd18 many_sessions.stp
# script: crowd19 many_sessions.stp
# script: crowd20 many_sessions.stp
# stdout: ^20 saw the read$
# limit: 120

all=$(for number in $(seq -w 20); do echo "crowd$number"; done)
start_all $all
cat /etc/hostname >/dev/null
kill -INT $loaders
wait $loaders || true
echo "$(grep -l '^seen$' crowd*.out | wc -l) saw the read"
