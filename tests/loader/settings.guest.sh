# Shows: GLOBAL=VALUE sets globals before begin probes run, at load time and with -G at compile time; invalid values are refused
# before anything is loaded.
# script: settings -D MAXSTRINGLEN=2048 settings.stp
# script: given -G most=3 -G who=compiled settings.stp
# script: remote remote.stp
# stdout: ^most=2 who=nobody plain=0$
# stdout: ^n=2$
# stdout: ^most=4 who=x=y z plain=-16$
# stdout: ^n=4$
# stdout: ^most=3 who=compiled plain=0$
# stdout: ^1000$
# stdout: ^refused 2 plain=ten: plain holds a number of 64 bits$
# stdout: ^refused 2 x=1: no such global that can be set; there is most, who, plain, n$
# stdout: ^remote -1 ''$
# stdout: ^remote 7 'ssh://far'$

spilerun settings.ko
spilerun settings.ko most=4 'who=x=y z' plain=-0x10
spilerun given.ko
long=$(printf '%01000d' 0)
spilerun settings.ko most=1 "who=$long" 2>err | sed -n 's/.*who=\(0*\) .*/\1/p' | tr -d '\n' | wc -c || true
cat err
for wrong in plain=ten x=1; do
	status=0
	spilerun settings.ko "$wrong" 2>err || status=$?
	echo "refused $status $(sed -n 's/^ERROR: //p' err)"
done
gone settings
spilerun remote.ko
spilerun remote.ko -r 7:ssh://far
