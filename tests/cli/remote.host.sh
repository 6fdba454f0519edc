# Shows: --remote compiles for the remote host's kernel and runs the module there; a local signal ends the remote session, and
# nothing is left behind. ssh and spilerun are replaced by programs that print their arguments.
# limit: 240
# stdout: ^status 0$
# stdout: ^ssh host me@two, port 2222 ran$
# stdout: ^ssh host one, port 22 ran$
# stdout: ^1: ran 1:one on .*/sent\.ko, -w, a module$
# stdout: ^2: ran 2:ssh://me@two:2222 on .*/sent\.ko, -w, a module$
# stdout: ^in the file: ran 1:one on .*/sent\.ko, , a module$
# stdout: ^failed 1$
# stdout: ^interrupted 0: begun, ended in order$
# stdout: ^ended there: 0: begun, ended in order$
# stdout: ^interrupted twice, by a host that does not end: 1$
# stdout: ^in the rc file: ran 1:one on .*/sent\.ko, , a module$
# stdout: ^other machine 1$
# stdout: ^a path for a release: .* is not a kernel release$
# stdout: ^no host 1$
# stdout: ^a pipe that nobody reads: 1 .*writing pipe: a pipe that nobody reads, or a socket$
# stdout: ^left: 0 directories, 0 modules$

cp -r "$CACHE" cache
export SPILE_CACHE_DIR=$PWD/cache
mkdir bin far
export PATH=$PWD/bin:$PATH FAR=$PWD/far MACHINE=x86_64
cat >bin/ssh <<'EOS'
#!/bin/sh
port=22
[ "$1" != -p ] || { port=$2; shift 2; }
[ "$1" = -- ] || exit 9
shift
host=$1
shift
case $1 in
uname*) echo "$RELEASE $MACHINE" ;;
*)
	echo "ssh host $host, port $port ran" >>"$FAR/log"
	[ -z "$DEAF" ] || exec sleep 60
	echo $$ >"$FAR/shell"
	TMPDIR=$FAR exec sh -c "$*"
	;;
esac
EOS
cat >bin/spilerun <<'EOS'
#!/bin/sh
options=
while [ $# -gt 1 ]; do
	case $1 in
	-r) remote=$2; shift ;;
	-T) waits=yes; shift ;;
	*) options=$1 ;;
	esac
	shift
done
if [ -n "$waits" ]; then
	trap 'echo ended in order; exit 0' TERM
	echo begun
	while :; do sleep 0.1; done
fi
head -c 4 "$1" | grep -q ELF && what='a module'
echo "ran $remote on $1, $options, $what"
exit "${STATUS:-0}"
EOS
chmod 755 bin/*
echo 'probe begin { println(@1) exit() }' >script.stp
"$SPILE" --remote one --remote=ssh://me@two:2222 --remote-prefix -w -m sent script.stp word >out 2>err && echo "status $?" || cat err
sort far/log
sort out
"$SPILE" --remote one -o file -m sent -e 'probe begin { exit() }' && sed 's/^/in the file: /' file
STATUS=1 "$SPILE" --remote one -e 'probe begin { exit() }' >out 2>err || echo "failed $?"
# Starts a session in the background, and waits until it has begun.
begin_session() {
	"$SPILE" --remote one -T 60 -e 'probe begin { println("x") }' >out 2>err &
	pid=$!
	for tenth in $(seq 1 300); do
		! grep -q begun out || break
		sleep 0.1
	done
}
begin_session
kill -INT $pid
status=0
wait $pid || status=$?
echo "interrupted $status: $(sed 'N;s/\n/, /' out)"
begin_session
kill -TERM "$(cat far/shell)"
status=0
wait $pid || status=$?
echo "ended there: $status: $(sed 'N;s/\n/, /' out)"
# Two identical signals at once would be merged.
rm far/log
DEAF=yes "$SPILE" --remote one -e 'probe begin { exit() }' 2>err &
pid=$!
for tenth in $(seq 1 300); do
	[ ! -e far/log ] || break
	sleep 0.1
done
kill -INT $pid
sleep 1
kill -INT $pid
status=0
timeout 20 tail --pid=$pid -f /dev/null || kill -KILL $pid
wait $pid || status=$?
echo "interrupted twice, by a host that does not end: $status"
mkdir rc
echo '--remote one -m sent' >rc/rc
SYSTEMTAP_DIR=$PWD/rc "$SPILE" -e 'probe begin { exit() }' >out 2>err && sed 's/^/in the rc file: /' out
MACHINE=aarch64 "$SPILE" --remote one -e 'probe begin { exit() }' 2>/dev/null || echo "other machine $?"
RELEASE=../$RELEASE "$SPILE" --remote one -e 'probe begin { exit() }' 2>err || sed -n 's/^/a path for a release: /p' err
"$SPILE" --remote=-oProxyCommand=x -e 'probe begin { exit() }' 2>/dev/null || echo "no host $?"
mkfifo pipe
status=0
timeout 100 "$SPILE" --remote one -o pipe -e 'probe begin { exit() }' 2>err || status=$?
echo "a pipe that nobody reads: $status $(cat err)"
rm -f far/log far/shell
echo "left: $(ls far | wc -l) directories, $(ls ./*.ko 2>/dev/null | wc -l) modules"
