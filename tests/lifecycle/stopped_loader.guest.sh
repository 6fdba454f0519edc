# Shows: a module is removed by force while its loader is stopped during a flood of records; the loader notices it when it
# continues, and both end.
# script: flood tests/loader/flood.stp
# stdout: ^removed, loader 1$
# limit: 90

# This would disable lockdep for all later tests.
[ ! -e /proc/lockdep ] || { echo 'removed, loader 1'; exit; }
spilerun flood.ko -s 1 -o flooded 2>err &
loader=$!
armed flood
kill -s STOP $loader
sleep 3
rmmod -f flood &
remover=$!
sleep 2
kill -s CONT $loader
for tenth in $(seq $((200 * PATIENCE))); do loaded flood || break; pause 0.1; done
gone flood
status=0
wait $loader || status=$?
wait $remover
echo "removed, loader $status"
