# Shows: how often memory of a program was faulted in for a handler is counted, in the table and as JSON; a handler that runs again
# for that is one hit.
# script: first_touch first_touch.stp
# script: absent first_touch_restart.stp
# stdout: ^ *hits +handled +faulted in +cycles
# stdout: ^ *1 +1 +[1-9][0-9]* .*read_untouched
# stdout: "faulted_in":[1-9]
# stdout: ^ *3 +3 +6 .*across
spilerun first_touch.ko --stats -c user 2>&1
spilerun first_touch.ko --stats=json -c user 2>&1
spilerun absent.ko --stats -c absent 2>&1
