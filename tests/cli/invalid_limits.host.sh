# Shows: invalid limits are refused with the valid range, not taken as something else.
# stdout: ^refused: 42$
refused=0
for name in MAXSTRINGLEN MAXMAPENTRIES MAXACTION MAXACTION_INTERRUPTIBLE MAXNESTING KRETACTIVE; do
	for value in 0 -1 4294967296 9223372036854775808 18446744073709551616 1x ''; do
		if out=$("$SPILE" -p3 "-D$name=$value" -e 'probe begin { exit() }' 2>&1); then
			echo "$name=$value was taken"
			continue
		fi
		case $out in
		*"$name is a number from "*) refused=$((refused + 1)) ;;
		*) echo "$name=$value: $out" ;;
		esac
	done
done
echo "refused: $refused"
