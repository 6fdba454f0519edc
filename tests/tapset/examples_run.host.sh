# Shows: example scripts of Debian's systemtap-doc: each runs in a guest under a small load, and prints the output that
# its description shows; most count what the kernel counts too.
# stdout: ^[0-9]+ of [0-9]+ print the expected output, [6-9][0-9] of them agree with counters of the kernel or a second tool; at least 60 have to$
# limit: 901

examples=/usr/share/systemtap/examples
if ! [ -d $examples ]; then
  echo "systemtap-doc is missing: run \`cargo xtask setup\`"
  exit 1
fi

# From the table: script and module (xN.ko) of line N, its loader's options, and the expected output. The modules have no
# names of our own: most are compiled by tapset/examples too, which begins earlier, and come from the cache.
cp -rL $examples tree
mkdir -p built
grep -vE '^(#|$)' "$ROOT/tests/tapset/examples.table" >table
number=0
while IFS= read -r line; do
  number=$((number + 1))
  script=${line%% ; *} rest=${line#* ; }
  path=${script%% *} arguments=${script#"$path"}
  echo "cd 'tree/${path%/*}' && \"$SPILE\" -r '$RELEASE' -p4 '${path##*/}' $arguments >'$PWD/built/$number.made' && mv \"\$(cat '$PWD/built/$number.made')\" '$PWD/built/x$number.ko'" >built/$number.sh
  echo "${rest%%; *}" >built/$number.options
  echo "${rest#*; }" >built/$number.pattern
  echo "$path" >built/$number.path
done <table
ls built/*.sh | xargs -P "$(nproc)" -I '{}' sh -c 'sh {} >{}.log 2>&1 </dev/null || true'

# Runs in the guest, with the numbers of the scripts that were built; eight at a time.
cat >guest.sh <<'EOF'
modprobe scsi_debug dev_size_mb=32
modprobe sd_mod
mkdir -p /mnt/d
sleep 1
disk=/dev/$(awk '/sd/ { print $4; exit }' /proc/partitions)

load() {
	/root/mkfs.ext4 -q -F $disk
	mount -t ext4 $disk /mnt/d
	dd if=/dev/zero of=/mnt/d/file bs=4k count=500
	stat -c 'file.bytes %s' /mnt/d/file >file
	echo "file.pages $(($(stat -c %s /mnt/d/file) / 4096))" >>file
	sync
	dd if=/mnt/d/file of=/dev/null bs=4k count=500
	dd if=$disk of=/dev/null bs=4k count=200
	umount /mnt/d
	for kind in futex semop aio tcp fault files signals sleep; do /root/load $kind 10; done
	/root/load burn 200 &
	echo $! >burn
	wait $(cat burn)
	cat /etc/hostname /no/such/file /proc/sys/vm/swappiness
	ping -c 1 127.0.0.1
	/usr/bin/calls
	echo text >/dev/ttyS0
}

# show NUMBER BATCH: prints its output, for the host to parse. A batch's facts are printed once.
show() {
	echo "@@@ $1.txt"
	head -c 300000 $1.out | tr -d '\000'
	echo
	echo "@@@ $1.err"
	cat $1.err
	echo "@@@ $1.batch"
	echo $2
	rm -f $1.out $1.err x$1.ko
}

mkfifo nothing
dmesg -c >/dev/null
batch=0
while [ $# -gt 0 ]; do
	some= loaders= alone= count=0
	begin_counting outer
	while [ $# -gt 0 ] && [ $count -lt 8 ]; do
		count=$((count + 1))
		options=$(cat $1.options)
		case $options in
		*-c*) alone="$alone $1" ;;
		*)
			some="$some $1"
			spilerun x$1.ko $options >$1.out 2>$1.err &
			echo $! >$1.pid
			loaders="$loaders $!"
			;;
		esac
		shift
	done
	for number in $some; do
		read -r name <$number.made
		name=${name##*/} name=${name%.ko}
		read -r process <$number.pid
		# However long it takes: a loader that starts in the background ignores the signal which is to end it.
		while :; do
			case $(spilerun status $name 2>/dev/null) in *': running, '*) break ;; esac
			# Some scripts end at once: the program of a zombie has no name.
			readlink /proc/$process/exe >/dev/null || break
			# Nothing is ever written to the pipe: a pause without a process.
			read -r -t 0.1 nothing <>nothing || true
		done
	done
	begin_counting inner
	load >load.out 2>&1 </dev/null
	end_counting inner >facts
	other_facts $(cat burn) facts >more
	cat file more >>facts
	# What has been counted is printed by timers of two and of five seconds.
	sleep 6
	for number in $some; do cat /proc/systemtap/$(basename "$(cat $number.made)" .ko)/* >>$number.out 2>/dev/null; done
	kill -INT $loaders 2>/dev/null
	wait $loaders
	end_counting outer >>facts
	batch=$((batch + 1))
	echo "@@@ facts$batch"
	grep -vE '^(pid|own)[.]' facts
	for number in $some; do show $number $batch; done
	for number in $alone; do
		begin_counting inner
		eval "spilerun x$number.ko $(cat $number.options)" >$number.out 2>$number.err
		batch=$((batch + 1))
		echo "@@@ facts$batch"
		end_counting inner | grep -vE '^(pid|own)[.]'
		show $number $batch
	done
	echo "@@@ dmesg"
	# Loading modules and mounting is reported there.
	dmesg -c | grep -vE 'launched .* with NULL argv|hrtimer: interrupt took|out-of-tree module taints|module verification failed|EXT4-fs' | sed "s/^/with$some$alone: /"
done
EOF

built= files= all=$number
for number in $(seq 1 $all); do
  if [ -f built/x$number.ko ]; then
    built="$built $number"
    files="$files --file built/x$number.ko --file built/$number.options --file built/$number.made"
  else
    echo "does not build: $(cat built/$number.path)"
    grep -m 1 -A 3 '^error' built/$number.sh.log || true
  fi
done
gcc -static -O1 -pthread -o load "$ROOT/tests/fixtures/load/load.c" || exit 1
status=0
"$XTASK" guest --memory 3072 --module scsi_debug --module sd_mod --file load --file /usr/sbin/mkfs.ext4 $files \
  "set -- $built; $(cat "$ROOT/tests/tapset/examples.counting.sh" guest.sh)" >guest.out 2>guest.err || status=$?
awk '/^@@@ / { file = "built/" $2; next } file { print >>file }' guest.out
for number in $built dmesg; do touch built/$number built/$number.err; done
if [ $status -ne 0 ] || [ -s built/dmesg ]; then
  echo "the guest ended with status $status, and its kernel logged:"
  cat built/dmesg
  tail -n 20 guest.err
  exit 1
fi

printed=0 agreed=0
for number in $built; do
  if perl "$ROOT/tests/tapset/examples.check.pl" "built/facts$(cat built/$number.batch)" "$(cat built/$number.pattern)" built/$number.txt >built/$number.failed; then
    printed=$((printed + 1))
    ! grep -qE '(^|[^\\])[{][a-z]' built/$number.pattern || agreed=$((agreed + 1))
  else
    echo "$(cat built/$number.path) does not print $(cat built/$number.failed):"
    head -n 8 built/$number.txt
    head -n 5 built/$number.err
  fi
done
echo "$printed of $all print the expected output, $agreed of them agree with counters of the kernel or a second tool; at least 60 have to"
[ $agreed -ge 60 ]
