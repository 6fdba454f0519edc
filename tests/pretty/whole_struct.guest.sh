# Shows: `$res$$` is the whole struct: every member has the value that the module itself logs, past 512 bytes.
# script: dump examples/ldlm_resource_dump.stp
# modules: ptlrpc
# stdout: ^all [3-9][0-9] values are there

start dump 'probe started, hit ^C to stop'
# begin prints before the other probes are armed: a single dump may be too early.
for try in 1 2 3 4 5; do
	echo 7 >/sys/module/ptlrpc/parameters/dump
	sleep 1
	if grep -q lr_last_field dump.out; then
		break
	fi
done
stop INT
# Values of the last resource dumped; earlier ones had other addresses.
dmesg | sed -n '/ptlrpc: dump at/h;/ptlrpc: expect /H;${x;p}' | sed -n 's/.*ptlrpc: expect //p' >expected
right=0
wrong=0
while read -r value; do
	if grep -qF -- ".$value" dump.out; then
		right=$((right + 1))
	else
		wrong=$((wrong + 1))
		echo "not there: .$value"
	fi
done <expected
if [ "$wrong" -gt 0 ] || [ "$(wc -c <dump.out)" -lt 600 ]; then
	cat dump.out
	exit 1
fi
echo "all $right values are there"
