# Shows: a probe in the session's process puts no breakpoint into others that run the same program, and a
# probe whose condition does not hold puts none into any.
# script: placement -c "shapes look" breakpoint_placement.stp
# stdout: ^breakpoints in the session only$

spilerun placement.ko -c 'sh -c "shapes look; sleep 2"' >inside &
for i in 1 2 3 4 5 6 7 8 9 10; do
	sleep 0.3
	grep -q '^hit' inside && break
done
shapes look >outside
wait
grep -qx 'hit 3' inside && grep -qx 'hit 100' inside && grep -qx 'breakpoint 1' inside && grep -qx 'then 0' inside || { echo "inside: $(cat inside)"; exit 1; }
grep -qx 'breakpoint 0' outside && grep -qx 'then 0' outside || { echo "outside: $(cat outside)"; exit 1; }
echo breakpoints in the session only
