# Shows: a module file that is truncated or has a flipped bit anywhere is refused before it is loaded, with one line and status 3;
# so are modules that spile did not build, directories and devices.
# script: hello tests/lifecycle/hello.stp
# limit: 300
# stdout: ^cut: 60 refused$
# stdout: ^flipped: 60 refused$
# stdout: ^stripped: 3 1$
# stdout: ^others: 5 refused$
# stdout: ^whole: hello$

refused=0
# refused FILE: counts the file if it is refused properly.
try() {
	status=0
	timeout 20 spilerun "$1" >out 2>err </dev/null || status=$?
	[ "$status" = 3 ] && [ "$(grep -c '' err)" = 1 ] && [ ! -s out ] || { echo "$1: $status"; cat out err; return 1; }
	refused=$((refused + 1))
	gone hello
}

size=$(stat -c %s hello.ko)
for turn in $(seq 60); do
	head -c $((size * turn / 61)) hello.ko >damaged.ko
	try ./damaged.ko
done
echo "cut: $refused refused"

refused=0
for turn in $(seq 60); do
	at=$((size * turn / 61))
	cp hello.ko damaged.ko
	byte=$(dd if=hello.ko bs=1 skip=$at count=1 2>/dev/null | hexdump -v -e '1/1 "%d"')
	printf "\\$(printf %03o $((byte ^ 1 << turn % 8)))" | dd of=damaged.ko bs=1 seek=$at conv=notrunc 2>/dev/null
	try ./damaged.ko
done
echo "flipped: $refused refused"

status=0
cp hello.ko longer.ko
echo >>longer.ko
spilerun ./longer.ko 2>err || status=$?
echo "stripped: $status $(grep -c '' err)"

refused=0
for other in /root/variant/lustre.ko /dev/null /dev/zero /root ./no_such_file.ko; do
	try "$other"
done
echo "others: $refused refused"
echo "whole: $(spilerun hello.ko | head -n 1 | cut -d ' ' -f 1)"
