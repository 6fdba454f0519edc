# Shows: a module stripped of its debug information, as by packaging tools, is loaded and runs; one with more stripped, or with a
# flipped bit in a loaded part, is refused.
# limit: 240
# stdout: ^stripped: 0 hits 3$
# stdout: ^by dpkg's way: 0 hits 3$
# stdout: ^damaged: 3$
# stdout: ^another section gone: 3$

"$SPILE" -r "$RELEASE" -p4 -m whole -e 'global hits
function twice:long(x:long) { return 2 * x }
probe begin { for (i = 0; i < 3; i++) if (twice(i) == 2 * i) hits <<< i; printf("hits %d\n", @count(hits)); exit() }' >/dev/null || exit
for name in stripped packaged; do cp whole.ko $name.ko; done
strip -g stripped.ko || exit
# dh_strip's options for kernel modules (debhelper).
strip --strip-debug --remove-section=.comment --remove-section=.note --preserve-dates packaged.ko || exit
for name in stripped packaged; do [ "$(stat -c %s $name.ko)" -lt "$(stat -c %s whole.ko)" ] || echo "$name.ko is not smaller"; done
cp stripped.ko damaged.ko
at=$(readelf -SW damaged.ko | sed -n 's/^ *\[ *[0-9]*\] \.spile\.meta *PROGBITS *[0-9a-f]* \([0-9a-f]*\) .*/\1/p')
printf '\377' | dd of=damaged.ko bs=1 seek=$((0x$at + 30)) conv=notrunc 2>/dev/null
cp whole.ko cut.ko
objcopy --remove-section=.orc_unwind --remove-section=.orc_unwind_ip cut.ko 2>/dev/null
"$XTASK" guest --file stripped.ko --file packaged.ko --file damaged.ko --file cut.ko '
output=$(spilerun stripped.ko); echo "stripped: $? $output"
output=$(spilerun packaged.ko); echo "by dpkg'"'"'s way: $? $output"
spilerun damaged.ko 2>/dev/null; echo "damaged: $?"
spilerun cut.ko 2>/dev/null; echo "another section gone: $?"
'
