# Shows: the scripts of the codes' pages that need a kernel: the wrong one gives the code of its page, the right one does not. Those that
# need none are compiled by compiler/tests/pages.rs, which also checks that no code is without a test.
# stdout: ^untrue: none of [1-9][0-9]*$
# limit: 180

# script PAGE WORD: the indented lines after the word.
script() {
	awk -v word="$2:" '$0 == word { on = 1; next } on && /^    / { print substr($0, 5); found = 1; next } on && found { exit }' "$1"
}
untrue=
count=0
for page in "$ROOT"/compiler/source/src/diagnostic/pages/*.md; do
	code=$(basename "$page" .md)
	script "$page" Wrong >wrong.stp
	grep -qE 'kernel\.function|"kernel"|probe vfs\.' wrong.stp || continue
	count=$((count + 1))
	"$SPILE" -r "$RELEASE" -p2 wrong.stp >out 2>&1 || true
	grep -q "\[$code\]" out || { untrue="$untrue $code" && echo "$code:" && cat wrong.stp out; }
	script "$page" Right >right.stp
	[ ! -s right.stp ] || ! "$SPILE" -r "$RELEASE" -p2 right.stp 2>&1 | grep "\[$code\]" || untrue="$untrue $code(right)"
done
echo "untrue: ${untrue:-none of $count}"
