# Shows: addresses in records have the symbols of the time of the record, even if the module was unloaded since, another one has
# its addresses, or only its init code is gone. Symbols of a limited number of modules are kept; older addresses are printed in
# hex, never with a wrong name.
# modules: dummy ifb
# script: gone -DMAXSTRINGLEN=4000 unloaded_module.stp
# guest: debian
# limit: 120
# stdout: ^reader stopped: all as they were$
# stdout: ^places taken by others: yes$
# stdout: ^too many: all as they were, the oldest in hex$
# stdout: ^reader running: all as they were$

# come_and_go TURNS: loads modules whose init functions call the probed function, and unloads them.
come_and_go() {
	for turn in $(seq $1); do
		for module in dummy ifb; do
			modprobe $module
			rmmod $module
		done
	done
}

# look: compares the two halves; sets $same, $hex, $taken.
look() {
	awk '
		/^at / { now = later = ""; half = 1; split($0, addresses, " "); line = 1; next }
		/^later$/ { half = 2; next }
		/^end$/ {
			half = 0
			same += now == later
			stacks++
			next
		}
		half == 1 {
			now = now $1 "\n"
			page = substr(addresses[++line], 1, length(addresses[line]) - 3)
			modules[page] = modules[page] " " $2
		}
		half == 2 { later = later ($1 ~ /^0x/ ? "hex" : $1) "\n" }
		/ = / {
			split($0, sides, " = ")
			if (sides[1] !~ /\+0x.*\[(kernel|dummy|ifb)\]/) wrong++
			if (sides[2] ~ /^0x/) hex++
			else if (sides[1] != sides[2]) { wrong++; print > "wrong" }
		}
		END {
			for (page in modules) {
				split(modules[page], all, " ")
				for (other in all) if (all[other] != all[1]) taken = "yes"
			}
			print "same=" same + 0, "stacks=" stacks + 0, "hex=" hex + 0, "wrong=" wrong + 0, "taken=" (taken ? taken : "no")
		}
	' gone.out >found
	cat found >&2
	eval "$(cat found)"
	[ $stacks -gt 0 ] && [ $wrong = 0 ] || { head wrong gone.out; exit 1; }
}

rmmod dummy ifb
start gone ready
armed gone
kill -STOP $loader
come_and_go 8
kill -CONT $loader
stop
look
[ $same = $stacks ] && [ $hex = 0 ] && echo "reader stopped: all as they were"
echo "places taken by others: $taken"

start gone ready
armed gone
kill -STOP $loader
come_and_go 40
kill -CONT $loader
stop
look
[ $hex -gt 0 ] && [ $hex -lt $stacks ] && [ $same -gt 20 ] && echo "too many: all as they were, the oldest in hex"

start gone ready
armed gone
come_and_go 40
stop
look
[ $same = $stacks ] && [ $hex = 0 ] && echo "reader running: all as they were"
