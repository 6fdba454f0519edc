# Shows: a session in a guest ends when its output cannot be written: with a message and status 8 on a full disk, in silence when the reader
# of a pipe has gone.
# stdout: ^full: status 8, the output cannot be written: No space left on device
# stdout: ^record: status 8, the output cannot be written: No space left on device
# stdout: ^pipe: tick 1$
# limit: 180

script='probe timer.ms(20) { printf("tick %d\n", ++n) } global n'
tell() {
	status=0
	"$SPILE" -r "$RELEASE" --guest "$@" -e "$script" 2>err || status=$?
	echo "status $status, $(grep -o 'the output cannot be written.*' err)"
}
echo "full: $(tell -o /dev/full)"
echo "record: $(tell --record /dev/full)"
echo "pipe: $("$SPILE" -r "$RELEASE" --guest -e "$script" | head -n 1)"
