# Shows: called as staprun the loader takes staprun's options, is called stapio, and ends with 0 or 1.
# script: ticks ticks.stp
# script: hello tests/lifecycle/hello.stp
# stdout: ^ended well 0$
# stdout: ^process stapio$
# stdout: ^interrupted 0$
# stdout: ^To reconnect, type "staprun -A ticks"$
# stdout: ^attached 0$
# stdout: ^refused 1$
# stdout: ^no such option 1 ERROR: staprun: invalid option -- 'z'
# stdout: ^remote 0$

mkdir bin
ln -s "$(command -v spilerun)" bin/staprun
PATH=$PWD/bin:$PATH
status=0
staprun -u -T 1 -w -b 1 hello.ko >hello.out || status=$?
echo "ended well $status"

staprun -vT 200 ticks.ko >ticks.out 2>ticks.err &
loader=$!
wait_for ticks.out ready
echo "process $(cat /proc/$loader/comm)"
stop INT
echo "interrupted $status"

staprun -L ticks.ko 2>detached.err
grep '^To' detached.err
armed ticks
staprun -A ticks -o attached.out 2>attached.err &
loader=$!
wait_for attached.out tick
stop INT
echo "attached $status"

status=0
staprun /no/such.ko 2>/dev/null || status=$?
echo "refused $status"
status=0
staprun -z hello.ko 2>err || status=$?
echo "no such option $status $(cat err)"
status=0
staprun -R -r 1:ssh://host hello.ko >hello.out || status=$?
echo "remote $status"
