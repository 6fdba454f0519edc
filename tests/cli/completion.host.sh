# Shows: bash completes the names of ready questions and their options after `spile ask`, and spile's own options elsewhere; the scripts for
# zsh and fish have the names too.
# stdout: ^names: opensnoop$
# stdout: ^all: [6-9][0-9]$
# stdout: ^options: --over$
# stdout: ^own: --from-bpftrace$
# stdout: ^zsh: 1 fish: 1$

"$SPILE" --completion bash >spile.bash || exit 1
cat >try.bash <<'END'
. ./spile.bash
words() {
	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	COMPREPLY=()
	local function=$(complete -p spile | sed 's/.*-F \([^ ]*\).*/\1/')
	"$function" spile "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
}
words spile ask opensn
echo "names: ${COMPREPLY[*]}"
words spile ask ''
echo "all: ${#COMPREPLY[@]}"
words spile ask slow-opens --ov
echo "options: ${COMPREPLY[*]}"
words spile --from-b
echo "own: ${COMPREPLY[*]}"
END
bash try.bash || exit 1
echo "zsh: $("$SPILE" --completion zsh | grep -c 'compadd .*opensnoop') fish: $("$SPILE" --completion fish | grep -c -- '-a opensnoop')"
