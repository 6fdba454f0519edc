# Shows: a workaround for a function that a live patch has replaced is refused, with the patch's name; a script that only reads is
# not; it is accepted when the patch is removed. If a live patch is loaded later, the probed function that it replaces is
# reported.
# script: lu_5642 -g examples/lu_5642/lu_5642.stp
# script: refills tests/workaround/refill_calls.stp
# script: elsewhere -g tests/workaround/other_function.stp
# modules: lustre
# guest: debian
# limit: 60
# stdout: ^refused 5: ERROR: ll_xattr_cache_refill of module lustre is replaced by the live patch livepatch, .*echo 0 >/sys/kernel/livepatch/livepatch/enabled
# stdout: ^a script that only reads runs$
# stdout: ^accepted without the live patch$
# stdout: ^reported: WARNING: the live patch livepatch has been loaded while the script is armed: it replaces ll_xattr_cache_refill of module lustre \(probe module\("lustre"\).function\("ll_xattr_cache_refill@.*echo 0 >/sys/kernel/livepatch/livepatch/enabled
# stdout: ^of another script: NOTICE: the live patch livepatch has been loaded .*: it replaces nothing that the script probes$

remove_live_patch() {
	until echo 0 >/sys/kernel/livepatch/livepatch/enabled; do pause 0.2; done
	for tenth in $(seq 100); do
		[ -e /sys/kernel/livepatch/livepatch ] || break
		pause 0.1
	done
	rmmod livepatch
}

modprobe livepatch
status=0
spilerun lu_5642.ko >out 2>err || status=$?
echo "refused $status: $(cat err)"
gone lu_5642
start refills looking
armed refills
stop
echo a script that only reads runs
remove_live_patch
spilerun -v elsewhere.ko >elsewhere.out 2>elsewhere.err &
elsewhere=$!
armed elsewhere
start lu_5642 'LU-5642 stap started'
armed lu_5642
echo accepted without the live patch
modprobe livepatch
wait_for lu_5642.err 'live patch livepatch has been loaded'
echo "reported: $(grep 'live patch' lu_5642.err)"
stop
wait_for elsewhere.err 'live patch livepatch has been loaded'
echo "of another script: $(grep 'live patch' elsewhere.err)"
kill -INT $elsewhere
wait $elsewhere
remove_live_patch
