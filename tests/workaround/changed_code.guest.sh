# Shows: a target module with the right build-id but changed code is refused before anything is armed, with function and offset,
# at the start of the session and when the module is loaded later; the right one is accepted, also with another script's probe in
# the same function.
# script: lu_5642 -g examples/lu_5642/lu_5642.stp
# script: refills tests/workaround/refill_calls.stp
# modules: lustre
# limit: 60
# stdout: ^refused 5: WARNING: lustre: the code of "ll_xattr_cache_refill" is not what the script was compiled for .at .0x[0-9a-f]* there is 90, not f7.: it has been patched, or the file was edited; nothing is armed there$
# stdout: ^changed code loaded later: Input/output error$
# stdout: ^the right build: Resource temporarily unavailable$
# stdout: ^with another script's probe: Resource temporarily unavailable$
# stdout: ^seen$

failure() { su user -c 'getfattr -n user.job /mnt/file' 2>&1 | grep -o 'Input/output error\|Resource temporarily unavailable'; }

original=$(find /lib/modules -name lustre.ko | head -n 1)
# neg %ebx; mov %ebx,%eax, the first of which becomes two nops: the function then fails when it is asked for -5, not for 5.
# (mov %ebx,%eax; pop %rbx; neg %eax in the debug kernel; neg %r12d; pop %rbx; mov %r12d,%eax by gcc 10.)
place=$(hexdump -v -e '1/1 "%02x"' "$original" | awk '{
	place = index($0, "f7db89d8")
	if (!place && (place = index($0, "89d85bf7d8"))) place += 6
	if (!place && (place = index($0, "41f7dc5b4489e0"))) place += 2
	print place
}')
[ $((place % 2)) = 1 ]
cp "$original" lustre.ko
printf '\220\220' | dd of=lustre.ko bs=1 seek=$((place / 2)) conv=notrunc 2>/dev/null

rmmod lustre
insmod ./lustre.ko
status=0
spilerun lu_5642.ko >out 2>err || status=$?
echo "refused $status: $(grep WARNING err)"
gone lu_5642
rmmod lustre

start lu_5642 'LU-5642 stap started'
armed lu_5642
insmod ./lustre.ko
wait_for lu_5642.err 'is not what the script was compiled for'
mount -t lustre none /mnt
fail_with -5
echo "changed code loaded later: $(failure)"
umount /mnt
rmmod lustre
insmod "$original"
mount -t lustre none /mnt
fail_with 5
echo "the right build: $(failure)"
stop

start refills looking
armed refills
other=$loader
start lu_5642 'LU-5642 stap started'
armed lu_5642
echo "with another script's probe: $(failure)"
stop
loader=$other
stop
sort -u refills.out
