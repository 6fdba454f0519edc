# Shows: how often memory of a program was faulted in for a handler is counted, in the table and as JSON.
# script: first_touch first_touch.stp
# stdout: ^ *hits +handled +faulted in +cycles
# stdout: ^ *1 +1 +[1-9][0-9]* .*read_untouched
# stdout: "faulted_in":[1-9]
spilerun first_touch.ko --stats -c user 2>&1
spilerun first_touch.ko --stats=json -c user 2>&1
