# Shows: twenty scripts run at once: the kernel's per-CPU memory for modules is enough for them.
# script: crowd01 crowd.stp
# script: crowd02 crowd.stp
# script: crowd03 crowd.stp
# script: crowd04 crowd.stp
# script: crowd05 crowd.stp
# script: crowd06 crowd.stp
# script: crowd07 crowd.stp
# script: crowd08 crowd.stp
# script: crowd09 crowd.stp
# script: crowd10 crowd.stp
# script: crowd11 crowd.stp
# script: crowd12 crowd.stp
# script: crowd13 crowd.stp
# script: crowd14 crowd.stp
# script: crowd15 crowd.stp
# script: crowd16 crowd.stp
# script: crowd17 crowd.stp
# script: crowd18 crowd.stp
# script: crowd19 crowd.stp
# script: crowd20 crowd.stp
# stdout: ^20 saw the read$
# limit: 120

all=$(for number in $(seq -w 20); do echo "crowd$number"; done)
start_all $all
cat /etc/hostname >/dev/null
kill -INT $loaders
wait $loaders || true
echo "$(grep -l '^seen$' crowd*.out | wc -l) saw the read"
