# Shows: addresses in records have the symbols of the time of the record, even if the module was unloaded since, another one has
# its addresses, or only its init code is gone. Symbols of a limited number of modules are kept; older addresses are printed in
# hex, never with a wrong name.
# modules: dummy ifb
# script: gone -DMAXSTRINGLEN=4000 unloaded_module.stp
# guest: debian
# limit: 120
# stdout: ^reader stopped: all names correct$
# stdout: ^addresses reused: yes$
# stdout: ^too many modules: the oldest in hex, other names correct$
# stdout: ^reader running: all names correct$

# load_and_unload TURNS: loads modules whose init functions call the probed function, and unloads them.
load_and_unload() {
	for turn in $(seq $1); do
		for module in dummy ifb; do
			modprobe $module
			rmmod $module
		done
	done
}

# compare: compares the two halves; sets $same, $hex, $reused.
compare() {
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
				for (other in all) if (all[other] != all[1]) reused = "yes"
			}
			print "same=" same + 0, "stacks=" stacks + 0, "hex=" hex + 0, "wrong=" wrong + 0, "reused=" (reused ? reused : "no")
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
load_and_unload 8
kill -CONT $loader
stop
compare
[ $same = $stacks ] && [ $hex = 0 ] && echo "reader stopped: all names correct"
echo "addresses reused: $reused"

start gone ready
armed gone
kill -STOP $loader
load_and_unload 40
kill -CONT $loader
stop
compare
[ $hex -gt 0 ] && [ $hex -lt $stacks ] && [ $same -gt 20 ] && echo "too many modules: the oldest in hex, other names correct"

start gone ready
armed gone
load_and_unload 40
stop
compare
[ $same = $stacks ] && [ $hex = 0 ] && echo "reader running: all names correct"
