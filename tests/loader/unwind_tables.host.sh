# Shows: stacks with frames of a module whose unwind tables are wrong are printed as far as the kernel can unwind them,
# without other effects (the class of CVE-2012-0875): spile's modules have no unwinder of their own, and read no such
# table.
# limit: 240
# stdout: ^zeros: 2 stacks, 0$
# stdout: ^ones: 2 stacks, 0$
# stdout: ^mixed: 2 stacks, 0$
# stdout: ^right: 2 stacks, 0 ll_xattr_cache_get$
# stdout: ^kernel: 0$

for word in $MODULES; do
	case $word in
	*/lustre.ko) [ -n "$right" ] || right=$word ;;
	*/lustre-*) [ -n "$right" ] || [ ! -e "$word/lustre.ko" ] || right=$word/lustre.ko ;;
	esac
done
cp "$right" right.ko || exit
cp right.ko lustre.ko
"$SPILE" -r "$RELEASE" -d "$PWD/lustre.ko" -p4 -m walks -e 'probe module("lustre").function("ll_xattr_cache_refill") {
	printf("stack\n"); print_backtrace(); printf("%s\n", sprint_backtrace()) }' >/dev/null || exit
# section NAME: its offset in the file, and its bytes.
section() {
	set -- $(readelf -SW right.ko | sed -n "s/^ *\[ *[0-9]*\] \\$1 *[A-Z0-9_]* *[0-9a-f]* \([0-9a-f]*\) \([0-9a-f]*\) .*/\1 \2/p")
	echo $((0x$1)) $((0x$2))
}
for name in zeros ones mixed; do
	cp right.ko $name.ko
	set -- $(section .orc_unwind)
	case $name in
	zeros) head -c "$2" /dev/zero ;;
	ones) head -c "$2" /dev/zero | tr '\000' '\377' ;;
	mixed) seq 100000 | tr "0-9" "\001\377\020\205\100\012\063\166\240\003" | head -c "$2" ;;
	esac | dd of=$name.ko bs=1 seek="$1" conv=notrunc 2>/dev/null
done
"$XTASK" guest --file walks.ko --file right.ko --file zeros.ko --file ones.ko --file mixed.ko '
for name in zeros ones mixed right; do
	cp $name.ko lustre.ko && insmod lustre.ko && mount -t lustre none /mnt || exit
	spilerun walks.ko -o stacks -c "getfattr -n user.job /mnt/file" >out 2>err
	echo "$name: $(grep -c ^stack stacks) stacks, $? $([ $name = right ] && grep -o ll_xattr_cache_get stacks | head -n 1)" | sed "s/ $//"
	umount /mnt; rmmod lustre
done
echo "kernel: $(dmesg | grep -cE "BUG|Oops|general protection|Call Trace")"
'
