# Shows: exit() with full rings ends the session, and exactly the printed and unread records are reported as lost.
# script: full -DMAXACTION=10000000 -DMAXACTION_INTERRUPTIBLE=10000000 -DSTP_NO_OVERLOAD exit_when_full.stp
# stdout: ^adds up$

spilerun full.ko -s 1 2>err | (sleep $((3 * SLOWNESS)); cat) >out
lost=$(sed -n 's/^WARNING: \([0-9]*\) records were lost.*/\1/p' err | tail -n 1)
printed=$(grep -c '^line' out)
written=$(sed -n 's/^written //p' out)
[ "$lost" -gt 0 ] && [ "$((printed + lost))" = "$written" ] && echo adds up || echo "printed $printed, lost $lost, written $written"
