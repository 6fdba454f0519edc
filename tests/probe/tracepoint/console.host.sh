# Shows: printk:console, whose probe makes kernels before 6.13 warn when they print in an NMI, is refused without -g, and `*` leaves
# it out; with -g it is probed.
# stdout: ^refused: 1, error\[E0207\]: `console` cannot be probed$
# stdout: ^in the list: 0, of others [0-9]{3,}$
# stdout: ^with -g: printk:console$

status=0
"$SPILE" -p2 -e 'probe kernel.trace("printk:console") { exit() }' 2>err >out || status=$?
echo "refused: $status, $(grep '^error' err)"
"$SPILE" -l 'kernel.trace("*")' >all
"$SPILE" -p2 -e 'global hits probe kernel.trace("*") { hits[pn()]++ }' >points
echo "in the list: $(grep -c '^kernel.trace("printk:console")' points), of others $(grep -c '^kernel.trace' points)"
"$SPILE" -g -p2 -e 'probe kernel.trace("printk:console") { exit() }' | sed -n 's/.*kernel.trace("\([^"]*\)").*/with -g: \1/p' | head -n 1
