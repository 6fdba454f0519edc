# Shows: processes that have ended are not in the target set, although nobody has waited for them; too many of them, one after the other, are
# an error.
# script: unwaited -DMAXACTION=100000 unwaited.stp
# limit: 60
# stdout: ^600: 1 in the set$
# stdout: ^1200: more than 1000 processes have ended that nobody has waited for$

spilerun unwaited.ko -c 'abuse unwaited 600' >out
echo "600: $(grep -c begat out) in the set"
spilerun unwaited.ko -c 'abuse unwaited 1200' >out
echo "1200: $(grep ended out)"
