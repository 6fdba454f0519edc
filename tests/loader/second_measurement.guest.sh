# Shows: a second measurement of a session is refused without waiting until the first has armed the probes.
# script: slow killed_while_arming.stp
# limit: 120
# stdout: ^second: Device or resource busy, at once$

insmod slow.ko
measures /dev/spile-slow
for tenth in $(seq $((300 * PATIENCE))); do rmmod slow 2>/dev/null && break; pause 0.1; done
gone slow
