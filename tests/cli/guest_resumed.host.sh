# Shows: the second start of a virtual machine saves its state, and later ones go on from it, also at the same time, with the right
# time. A run that is ended or killed meanwhile is in nobody's way; what is damaged is made again; where there is no room machines boot.
# limit: 240
# stdout: ^first: hello$
# stdout: ^TERM while it saves: 143, its machine ends, unfinished: 0$
# stdout: ^KILL while it saves: 137, its machine ends, unfinished: [12]$
# stdout: ^then: hello resumed, files: 2$
# stdout: ^two at once: 2 resumed, 2 right times, 2 boots$
# stdout: ^memory that was changed: hello resumed, other memory$
# stdout: ^no room: hello, .* is free on the disk of the cache$
# stdout: ^cleared: 0$

export SPILE_GUEST_CACHE_DIR=$PWD/guests
start() { "$SPILE" -v --guest -r "$RELEASE" "$@"; }
guest() { start "$@" 2>err; sed -n 's/^The virtual machine was \(resumed\),.*/\1/p' err; }
echo 'probe begin { println("hello") exit() }' >hello.stp
echo "first: $(guest hello.stp | xargs)"
cp -r guests marked

alive() { for process in $machine; do grep -qs '^State:.[^ZX]' /proc/$process/status && return; done; false; }
# while_it_saves SIGNAL: sends it to a run that makes a saved state, and prints how that ends.
while_it_saves() {
	"$SPILE" --guest -r "$RELEASE" hello.stp >out 2>&1 &
	spile=$!
	for tenth in $(seq 600); do
		machine=$(cat /proc/$spile/task/*/children)
		! ls -A guests/guest | grep -q '^\.new-' || [ -z "$machine" ] || break
		sleep 0.1
	done
	sleep 0.5
	kill -s $1 $spile
	status=0
	wait $spile || status=$?
	for tenth in $(seq 50); do
		alive || break
		sleep 0.1
	done
	alive || echo "$1 while it saves: $status, its machine ends, unfinished: $(ls -A guests/guest | grep -c '^\.new-')"
}
while_it_saves TERM
while_it_saves KILL
echo "then: $(guest hello.stp | xargs), files: $(ls -A guests/guest | wc -l)"

cat >time.stp <<'END'
probe begin { printf("%d\n", gettimeofday_s()) }
probe process.end { if (pid() == target()) exit() }
END
for one in 1 2; do
	(
		before=$(date +%s)
		start time.stp -c 'cat /proc/sys/kernel/random/uuid' >out$one 2>err$one
		seen=$(head -n 1 out$one)
		[ "$before" -le "$seen" ] && [ "$seen" -le "$(date +%s)" ] && echo right >right$one
	) &
done
wait
echo "two at once: $(cat err1 err2 | grep -c ' was resumed, ') resumed, $(cat right1 right2 | wc -l) right times," \
	"$(cat out1 out2 | grep -e - | sort -u | wc -l) boots"

memory() { ls -i guests/guest/*.memory; }
before=$(memory)
touch guests/guest/*.memory
echo "memory that was changed: $(guest hello.stp | xargs), $([ "$before" != "$(memory)" ] && echo other memory)"

mkdir full
# In a separate namespace, so that nothing stays mounted.
cat >full.sh <<'END'
mount -t tmpfs -o size=100m,mode=700 tmpfs full
cp -r marked/* full
export SPILE_GUEST_CACHE_DIR=$PWD/full
"$SPILE" --guest -r "$RELEASE" hello.stp 2>err
END
hello=$(unshare -m sh full.sh)
echo "no room: $hello, $(cat err)"
SPILE_CACHE_DIR=$PWD/guests "$SPILE" --cache clear >/dev/null
echo "cleared: $(ls -A guests | wc -l)"
