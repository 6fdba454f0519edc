# Shows: users who run code of as many files as they can do not take the names of frames from others: one user has a share of the
# files that a session keeps, all of them together one that leaves room for root. A message says so once.
# script: shares shares.stp
# stdout: ^one has run many: no name$
# stdout: ^another one: say$
# stdout: ^two have run many, root: fresh$
# stdout: ^user 5001: 4000 stacks$
# stdout: ^user 5002: 4000 stacks$
# stdout: ^one warning$
# absent: ERROR
# limit: 120
# named PROGRAM USER: how the frame of its caller is printed, in its last stack.
named() { sed -n "/^$1 by $2\$/,/^[a-z]/p" shares.out | sed -n 's/.* : \(say\)+.*/\1/p; s/.*\/\(stacks_stripped\|fresh\)+.*/\1/p' | head -n 1; }
add_users one:5001 two:5002
chmod 755 .
start_armed shares begun
su one -c 'exec load run 4000'
su one -c 'exec stacks_stripped chain' >/dev/null
sleep $((2 * SLOWNESS))
echo "one has run many: $(named stacks_stripped 5001 | grep . || echo no name)"
su two -c 'exec stacks chain' >/dev/null
su two -c 'exec load run 4000'
cp "$(which stacks_stripped)" fresh
./fresh chain >/dev/null
stop
echo "another one: $(named stacks 5002)"
echo "two have run many, root: $(named fresh 0)"
grep ^user shares.out
[ "$(grep -c 'one user.s programs have run code of more files than a session keeps for a user (1536)' shares.err)" = 1 ] && echo one warning
