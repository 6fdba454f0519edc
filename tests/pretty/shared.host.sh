# Shows: scripts that print all variables at the entries and returns of many functions have few handlers, and each description
# of a type once.
# limit: 120
# stdout: ^at least 100 functions$
# stdout: ^handlers: fewer than half$
# stdout: ^entry handlers: fewer than half$
# stdout: ^descriptions twice: 0$
# stdout: ^bytes of formats: fewer than 1000 each$

text='probe kernel.function("*@fs/namei.c").call { println($$vars$$) } probe kernel.function("*@fs/namei.c").return { println($$vars$$) }'
"$SPILE" -r "$RELEASE" -p3 -e "$text" >script.c
functions=$(grep -c '\.kind = SPILE_PROBE_KRETPROBE' script.c)
if [ "$functions" -ge 100 ]; then echo 'at least 100 functions'; else echo "$functions functions"; fi

# few NAME COUNT: of the functions.
few() { if [ "$2" -gt 0 ] && [ $(($2 * 2)) -lt "$functions" ]; then echo "$1: fewer than half"; else echo "$1: $2 of $functions"; fi; }
few handlers "$(grep '^static void probe_.*)$' script.c | grep -vc '_return_entry(')"
few 'entry handlers' "$(grep -c '^static void probe_.*_return_entry(.*)$' script.c)"

# Each is one string over several lines; its text is joined and its length and name dropped.
awk '/^static const unsigned char description_[0-9]*\[[0-9]*\] =/ { inside = 1; next }
     inside { text = text $0 } inside && /;$/ { print text; text = ""; inside = 0 }' script.c | sort >descriptions
[ -s descriptions ] || echo 'no descriptions'
echo "descriptions twice: $(uniq -d descriptions | wc -l)"

# Formats are bytecode that begins with a literal, "\001"; with a description in it, one has thousands of bytes.
longest=$(awk '/^static const unsigned char table_[0-9]*\[/ { split($0, part, /[][]/); bytes = part[2]; next }
               bytes { if (/^\t"\\001/ && bytes + 0 > most) most = bytes + 0; bytes = 0 } END { print most + 0 }' script.c)
if [ "$longest" -gt 0 ] && [ "$longest" -lt 1000 ]; then echo 'bytes of formats: fewer than 1000 each'; else echo "bytes of formats: up to $longest"; fi
