# Shows: sessions whose handlers take almost all of a CPU's time together, but none of them more than it may, do not go on: one
# that takes most ends, with a message, and the others continue with their share. The CPU's clock counts instructions.
# limit: 150
# stdout: ^two of them: 0 ended$
# stdout: ^together: 1 of 3 ended, of +9[0-9]% .* may take 75%; this session took 3[0-9]%, the most, and ends$

cat >share_of_cpu.stp <<'END'
# A third of each tick, of 4 ms.
probe timer.profile {
  began = local_clock_ns()
  while (local_clock_ns() - began < 1300000) turns++
}
global turns
END
for name in one two three; do
	"$SPILE" -r "$RELEASE" -p4 -m $name -DMAXACTION=100000000 share_of_cpu.stp >/dev/null
done
cat >scene.sh <<'END'
cd /root
run() {
	loaders= ended=0
	for name; do
		spilerun $name.ko -T 2 >/dev/null 2>$name.err &
		loaders="$loaders $!"
	done
	for loader in $loaders; do wait $loader || ended=$((ended + 1)); done
}
run one two
echo "two of them: $ended ended"
run one two three
echo "together: $ended of 3 ended, of $(cat one.err two.err three.err | sed 's/.*their handlers took//')"
END
"$XTASK" guest --counting --file one.ko --file two.ko --file three.ko --file scene.sh '. /root/scene.sh'
