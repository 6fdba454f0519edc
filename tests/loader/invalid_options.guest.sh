# Shows: wrong options are refused with the right status and a message that names them, and no module is left behind.
# script: hello tests/lifecycle/hello.stp
# modules: lustre
# limit: 60
# stdout: ^all refused as expected$

# try STATUS TEXT COMMAND...: checks its status, and for a line on standard error that contains the text.
try() {
	wanted=$1 text=$2
	shift 2
	status=0
	timeout 20 spilerun "$@" >out 2>err </dev/null || status=$?
	[ "$status" = "$wanted" ] && grep -qF -- "$text" err || { echo "spilerun $*: $status, not $wanted with '$text'"; cat err; wrong=1; }
	gone hello || wrong=1
}

wrong=0
try 2 'Usage' 
try 2 "'x'" hello.ko -T x
try 2 "'-1'" hello.ko -T -1
try 2 "'0'" hello.ko -b 0
try 2 "'99999'" hello.ko -s 99999
try 2 'SIZE is at most' hello.ko -S 1048577 -o file
try 2 '-S' hello.ko -S 1
try 2 "'x'" hello.ko -x x
try 2 'there is no process -5 (-x)' hello.ko -x -5
try 2 'nothing' hello.ko nothing=1
try 2 'nothing' hello.ko nothing
try 2 '--only' hello.ko --only colour=red
try 2 '--expires' hello.ko --expires yesterday
try 2 '--keep' hello.ko --keep=yes
try 2 'no_such' --no_such
try 2 'cannot be used with' hello.ko -c true -x 1
try 9 'no module lustre built by spile' -d lustre
try 9 'no module  built by spile' -d ''
try 9 'no module ../../etc/passwd built by spile' -d ../../etc/passwd
try 9 'no module lustre built by spile' -A lustre
try 9 'no module lustre built by spile' status lustre
try 9 'no module lustre built by spile' observe lustre
try 9 'no module nothing built by spile' enforce nothing
try 2 'a value is required' ''
try 3 'no/such cannot be read' no/such
try 8 'cannot be written' hello.ko -o /no/such/file
try 8 'cannot be written' hello.ko -o /
mkfifo pipe
try 8 'pipe cannot be written: it is a pipe that nobody reads' hello.ko -o pipe
try 0 'it is no regular file' hello.ko --metrics /dev/null
[ -c /dev/null ] || wrong=1
try 8 'cannot be written' hello.ko --metrics unix:/no/such/socket
try 8 'cannot be written' hello.ko --metrics unix:/dev/null
try 3 'no service' service run nothing
try 3 'no service' service enable ../x
try 3 'no service' service remove nothing
try 2 'is called hello' service install other hello.ko
try 3 'no regular file' service install hello /dev/zero
loaded lustre
[ $wrong = 0 ] && echo all refused as expected
