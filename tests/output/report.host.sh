# Shows: a script run by `spile report` becomes one page without other files, under 1 MB, and text for a terminal: histograms, a heat map,
# a series, percentiles, tables, stacks, differences from another recording, what was lost, the cost of the probes. Names from the
# system cannot become markup or escape sequences; a damaged recording gives what was before the damage.
# stdout: ^page: [0-9]{4,6} bytes, 0 other files$
# stdout: ^parts: Cost of the probes, Numbers, Output, Stacks, @hist_log\(sizes\), over time$
# stdout: ^charts: histogram 1, heat map 1, series 1$
# stdout: ^stack: vfs_read: 40 \(
# stdout: ^markup: 0 1$
# stdout: ^compared: 1 before, [1-9][0-9]* was$
# stdout: ^terminal: 40 columns, 0 escapes$
# stdout: ^ *4 – 7 │█+│10$
# stdout: ^damaged: status 1, the page is there and says so$
# stdout: ^a mistake: status 1, nothing is left$
# limit: 180

cat >script.stp <<'END'
global sizes, reads, ticks
probe kernel.function("vfs_read") { if (execname() != "dd") next
	sizes <<< $count
	reads++
	print_backtrace()
	printf("%s %d %s\n", execname(), $count, "<img src=x onerror=alert(1)>\x1b[2J")
	if (reads % 5 == 0) print(@hist_log(sizes)) }
probe timer.ms(20) { printf("%d\n", reads) if (++ticks >= 5 && reads >= 40) exit() }
END
TMPDIR=$PWD "$SPILE" report -o page.html -r "$RELEASE" --guest script.stp \
	-c 'sh -c "dd if=/dev/zero of=/dev/null bs=5 count=20; dd if=/dev/zero of=/dev/null bs=5000 count=20; exec sleep 1000"' >out 2>err ||
	{ cat err; exit 1; }
# The same once more, kept.
"$SPILE" --record it -r "$RELEASE" --guest script.stp -c 'dd if=/dev/zero of=/dev/null bs=5 count=10' 2>err || { cat err; exit 1; }
count() {
	grep -o "$1" "${2:-page.html}" | wc -l
}
echo "page: $(wc -c <page.html) bytes, $(count 'https\?://\|src="\|@import\|url(') other files"
echo "parts: $(sed -n 's/<h[23]>\(Cost.*\|Numbers\|Output\|Stacks\|@hist.*\|over time\)<.*/\1/p' page.html | LC_ALL=C sort -f -u | LC_ALL=C sort | sed '/^@/d;/^over/d' | tr '\n' ',' | sed 's/,/, /g')$(sed -n 's/<h[23]>\(@hist.*\|over time\)<.*/\1/p' page.html | sort -u | paste -sd, | sed 's/,/, /')"
echo "charts: histogram $(count 'aria-label="Histogram of') , heat map $(count 'hist_log(sizes) over time"'), series $(count 'aria-label="reads over time')" | sed 's/ ,/,/'
sed -n 's/.*<title>\(vfs_read: [0-9]* (\).*/stack: \1/p' page.html | head -n 1
echo "markup: $(count '<img') $(grep -c '&lt;img src=x onerror=alert(1)&gt;\\u{1b}\[2J' page.html | sed 's/[1-9][0-9]*/1/')"
"$SPILE" report --compare it -o compared.html it || exit 1
echo "compared: $(count '<p>before: ' compared.html) before, $(count '<small>was' compared.html) was"

COLUMNS=40 "$SPILE" report it >text || exit 1
echo "terminal: $(LC_ALL=C.UTF-8 wc -L <text | sed 's/^\([1-3]*[0-9]\)$/40/') columns, $(grep -c "$(printf '\033')" text) escapes"
grep '4 – 7' text | head -n 1

status=0
head -c 1500 it >cut
"$SPILE" report cut -o cut.html 2>err || status=$?
grep -q 'it ends inside a frame' cut.html && echo "damaged: status $status, the page is there and says so"
status=0
TMPDIR=$PWD "$SPILE" report -o never.html -r "$RELEASE" -e 'probe begin { prntln(1) }' >out 2>err || status=$?
[ ! -e never.html ] && ! ls | grep -q spile-report && echo "a mistake: status $status, nothing is left"
