# Shows: a module with probes at its tracepoints is unloaded, and the kernel logs nothing; they are armed again when it is loaded.
# script: goes tests/probe/tracepoint/module_unload.stp
# modules: nbd
# stdout: ^armed [1-9]
# stdout: ^without it 0$
# stdout: ^armed [1-9]
# absent: WARNING|BUG:|Call Trace

armed_now() { spilerun status goes | sed -n 's/ of .* probes armed//p'; }
start goes begun
armed goes
echo "armed $(armed_now)"
rmmod nbd
gone nbd
echo "without it $(armed_now)"
modprobe nbd
echo "armed $(armed_now)"
rmmod nbd
stop
gone goes
