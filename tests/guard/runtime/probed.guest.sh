# Shows: code that runs on a hit cannot be probed: such probes of another session are refused with the reason, its other probes
# run, and the kernel refuses them for any caller.
# script: victim tests/guard/runtime/victim.stp
# script: attacker tests/guard/runtime/attacker.stp
# stdout: ^WARNING: probe kprobe.module\("victim"\).function\("handle_arguments"\).return: refused: it is in a module made by spile, whose code runs at hits$
# stdout: ^WARNING: probe kprobe.module\("victim"\).function\("spile_context_run"\): refused: it is in a module made by spile
# stdout: ^of the runtime 0, of the kernel 1$
# stdout: ^the kernel refuses handle_arguments$
# stdout: ^the kernel refuses spile_run_whole$
spilerun -L victim.ko
spilerun attacker.ko -c 'cat /etc/hostname' 2>&1
for name in handle_arguments spile_run_whole; do
	echo "p:attack victim:$name" 2>/dev/null >/sys/kernel/tracing/kprobe_events || echo "the kernel refuses $name"
done
spilerun -d victim
gone victim
