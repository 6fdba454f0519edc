# Shows: stacks that lead through a module whose unwind tables are wrong are printed as far as the kernel can follow them, and nothing
# else happens (the class of CVE-2012-0875): spile's modules have no unwinder of their own, and read no such table.
# limit: 240
# stdout: ^zeros: 1 stacks, 0$
# stdout: ^ones: 1 stacks, 0$
# stdout: ^mixed: 1 stacks, 0$
# stdout: ^right: 1 stacks, 0 ll_fill_super$
# stdout: ^kernel: 0$

"$SPILE" -r "$RELEASE" -p4 -m walks -e 'probe kernel.function("simple_fill_super") {
	printf("stack\n"); print_backtrace(); printf("%s\n", sprint_backtrace()) }' >/dev/null || exit
for word in $MODULES; do case $word in */lustre.ko) right=$word ;; */lustre-*) [ -e "$word/lustre.ko" ] && right=$word/lustre.ko ;; esac; done
cp "$right" right.ko || exit
# section NAME: where it begins in the file, and its bytes.
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
	mixed) seq 100000 | sha512sum -b | head -c 128 >seed; while :; do cat seed; done | head -c "$2" ;;
	esac | dd of=$name.ko bs=1 seek="$1" conv=notrunc 2>/dev/null
done
"$XTASK" guest --file walks.ko --file right.ko --file zeros.ko --file ones.ko --file mixed.ko '
for name in zeros ones mixed right; do
	cp $name.ko lustre.ko && insmod lustre.ko || exit
	spilerun walks.ko -o stacks -c "mount -t lustre none /mnt" 2>err
	echo "$name: $(grep -c ^stack stacks) stacks, $? $([ $name = right ] && grep -o ll_fill_super stacks | head -n 1)" | sed "s/ $//"
	umount /mnt; rmmod lustre
done
echo "kernel: $(dmesg | grep -cE "BUG|Oops|general protection|Call Trace")"
'
