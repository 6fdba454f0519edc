# Shows: any process that opens a module's device can make any call, valid or not, from several threads and processes, write
# anything into the rings and close it at any point: the kernel logs nothing, and the module can be removed. As root, and as the
# user who owns the session. With SPILE_TEST_SECONDS=600 in the environment of cargo xtask test it runs for that long.
# script: fuzzed device.stp
# stdout: ^root: .* sessions, .* calls
# stdout: ^a user: .* sessions, .* calls
# stdout: ^modules left: 0$
# limit: 120

while :; do cat /proc/version >/dev/null; ls /proc/self/ >/dev/null; done &
load=$!
seed=$(date +%s)
echo "seed $seed"
# Its status fails the test if too few of the calls succeeded.
counts=$(device fuzzed.ko ${SPILE_TEST_SECONDS:-8} $seed)
echo "root: $counts"
counts=$(device fuzzed.ko ${SPILE_TEST_SECONDS:-8} $seed 4242)
echo "a user: $counts"
kill $load
echo "modules left: $(grep -c '^fuzzed' /proc/modules)"
