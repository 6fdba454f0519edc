# Shows: each kind of refusal has its exit status and one line on standard error, and leaves no module behind.
# script: ticks ticks.stp
# script: hello tests/lifecycle/hello.stp
# stdout: ^no file 3 1$
# stdout: ^not ours 3 1$
# stdout: ^no rights 4 1$
# stdout: ^in use 6 1$
# stdout: ^no process 2 1$
# stdout: ^no such directory 8 1$
# stdout: ^disk full 8 1$
# stdout: ^not loaded 9 1$

# refused NAME COMMAND...: its status and the number of errors it prints.
refused() {
	name=$1
	shift
	status=0
	"$@" >out 2>err || status=$?
	echo "$name $status $(grep -c '^ERROR: ' err)"
}
refused 'no file' spilerun no_such_script
refused 'not ours' spilerun /root/variant/lustre.ko
cp hello.ko /tmp/hello.ko
chmod 644 /tmp/hello.ko
refused 'no rights' su user -c 'spilerun /tmp/hello.ko'
start ticks ready
refused 'in use' spilerun ticks.ko
stop TERM
refused 'no process' spilerun hello.ko -x 999999
refused 'no such directory' spilerun hello.ko -o /no/such/directory/file
gone hello
refused 'disk full' spilerun ticks.ko -o /dev/full
gone ticks
refused 'not loaded' spilerun -d ticks
