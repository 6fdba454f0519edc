# Shows: a script that ends before its command has started does not wait for the command.
# script: early_exit tests/loader/early_exit.stp
# stdout: ^all ended$
# limit: 90

for turn in 1 2 3 4 5 6 7 8; do
	timeout 10 spilerun early_exit.ko -c 'cat /etc/hostname' >out 2>err
	grep -q '^x$' out
done
echo all ended
