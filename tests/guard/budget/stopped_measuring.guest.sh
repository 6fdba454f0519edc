# Shows: a session can be stopped while hits are counted for a budget: counting ends, and nothing stays armed.
# script: rare tests/guard/budget/cheap.stp
# stdout: ^start: Device or resource busy$
# stdout: ^stop: stopped$
# stdout: ^measured: Interrupted system call$
# stdout: ^armed: 1, then 0$
# limit: 120

insmod rare.ko
measure /dev/spile-rare || echo "status $?"
rmmod rare
