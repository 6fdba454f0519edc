# Shows: a recording of a script in a guest is replayed as the text that the script would have printed, and in every format, with the
# values, types, processes and probes; --where and --from choose events; a running session is written as NDJSON, and what its command
# prints does not get between. A recording that is cut off or damaged is read up to there.
# stdout: ^text: 7 reads of "/dev/zero"$
# stdout: ^stack: vfs_read ksys_read$
# stdout: ^histogram:  *4 \|@@@@@@@ +7$
# stdout: ^messages: WARNING: odd \\x1b\[31m<b>"$
# stdout: ^print: "cpu":[0-9]+,"pid":[0-9]+,"tid":[0-9]+,"comm":"dd","probe":"kernel.function\(\\"vfs_read@fs/read_write.c:[0-9]+\\"\)","values":\{"execname":"dd","count":5,"file->f_mode":[0-9]+\}$
# stdout: ^object: \{"tv_sec":3,"tv_nsec":4\}$
# stdout: ^buckets: \[\{"from":4,"to":7,"count":7\}\]$
# stdout: ^frames: vfs_read[^ ]* .kernel., ksys_read
# stdout: ^document: 1 session, 1 end, status 0$
# stdout: ^rows: 7 dd$
# stdout: ^folded: dd;entry_SYSCALL_64_after_hwframe;do_syscall_64;(__x64_sys_read;)?ksys_read;vfs_read 7$
# stdout: ^packets: 0a0d0d0a, 1 of 45000014$
# stdout: ^perfetto: 7 instants, thread dd$
# stdout: ^where: 7 0 7$
# stdout: ^times: 1 all$
# stdout: ^unknown: the script names no value cuont; it names: execname, count, file->f_mode
# stdout: ^live: 2 values, 0 other lines, the command said hello$
# stdout: ^cut off: spile: cut: it ends inside a frame, .*, status 1, 1 session$
# stdout: ^damaged: spile: changed: it is damaged at byte [0-9]+: what is before it was read, status 1$
# stdout: ^other file: spile: script.stp: it is no recording of spile .*, status 1$
# stdout: ^itself: .*the output would replace the recording, status 1$
# absent: panicked
# limit: 180

cat >script.stp <<'END'
%{
static const unsigned char packet[20] = { 0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1 };
static struct timespec64 moment = { 3, 4 };
%}
function packet:long() %{ /* pure */ STAP_RETVALUE = (long)packet; %}
function moment:long() %{ /* pure */ STAP_RETVALUE = (long)&moment; %}
global sizes, reads
probe kernel.function("vfs_read") {
	if (pid() != target()) next
	printf("%s reads %d, mode %x\n", execname(), $count, $file->f_mode)
	print_backtrace()
	sizes <<< $count
	reads++
}
probe end {
	printf("%d reads of \"/dev/zero\"\n", reads)
	print(@hist_log(sizes))
	printf("%*M\n", 50, 20, packet()) 
	printf("%s\n", @cast(moment(), "timespec64")$)
	warn("odd \x1b[31m<b>\"")
}
END
sed -i 's/printf("%\*M\\n", 50, 20, packet()) */printf("%.20M\\n", packet())/' script.stp
"$SPILE" -g -r "$RELEASE" --guest --record it script.stp -c 'dd if=/dev/zero of=/dev/null bs=5 count=7' 2>recorded.err || { cat recorded.err; exit 1; }
replay() {
	"$SPILE" replay "$@"
}

replay it >text 2>messages || { cat messages; exit 1; }
sed -n 's/^7 reads/text: &/p' text
echo "stack: $(sed -n 's/.* : \([a-z_]*\)+0x.*/\1/p' text | head -n 2 | tr '\n' ' ' | sed 's/ $//')"
sed -n 's/^ *4 |/histogram: &/p' text
sed 's/^/messages: /' messages

replay it --format ndjson >lines || exit 1
sed -n 's/.*"kind":"print","time":[0-9]*,\(.*"count":5.*}\)}$/print: \1/p' lines | head -n 1
sed -n 's/.*:\({"tv_sec[^}]*}\)}}$/object: \1/p' lines
sed -n 's/.*"@hist_log(sizes)":\(\[.*\]\)}}$/buckets: \1/p' lines
echo "frames: $(sed -n 's/.*"values":{"stack":\[//p' lines | head -n 1 | tr -d '"' | sed 's/,/, /g')"
replay it --format json >document || exit 1
[ "$(head -c 1 document)" = '[' ] && [ "$(tail -n 1 document)" = ']' ] || exit 1
echo "document: $(grep -c '"kind":"session"' document) session, $(grep -c '"kind":"end"' document) end, status $(sed -n 's/.*"kind":"end".*"status":\([0-9]*\),.*/\1/p' document)"
# The lines are the document's elements.
sed -e '1d;$d' -e 's/,$//' document | cmp - lines || exit 1

replay it --format csv >rows || exit 1
echo "rows: $(grep -c ',dd,.*,5,' rows) $(sed -n '3s/^print,[0-9]*,[0-9]*,[0-9]*,[0-9]*,\([a-z]*\),.*/\1/p' rows)"
replay it --format folded >stacks || exit 1
sed -n 's/^dd;/folded: &/p' stacks
replay it --format pcapng -o packets || exit 1
hex() {
	od -An -v -tx1 "$1" | tr -d ' \n'
}
echo "packets: $(hex packets | cut -c 1-8), $(hex packets | grep -o 45000014 | wc -l) of 45000014"
replay it --format perfetto -o trace || exit 1
echo "perfetto: $(grep -ao 'file->f_mode' trace | wc -l) instants, thread $(grep -ao 'dd' trace | head -n 1)"

echo "where: $(replay it --where '$count == 5 && comm == "dd"' | grep -c '^dd reads') $(replay it --where 'count > 5' | grep -c '^dd reads') $(replay it --where 'execname() =~ "^d" && probe =~ "vfs_read" && count' | grep -c '^dd reads')"
echo "times: $(replay it --to 0s | grep -c '^dd') $(replay it --from 0s 2>/dev/null | cmp - text && echo all)"
replay it --where 'cuont == 5' 2>&1 >/dev/null | sed -n 's/.*--where: /unknown: /p'

"$SPILE" -r "$RELEASE" --guest --format ndjson -e 'probe begin, end { printf("%d %s\n", 7, "x") }' \
	-c 'echo hello' >live 2>live.err || { cat live.err; exit 1; }
echo "live: $(grep -c '"values"' live) values, $(grep -vc '^{"kind":' live) other lines, the command said $(grep hello live.err)"

status=0
head -c 900 it >cut
said=$(replay cut --format ndjson 2>&1 >cut.lines) || status=$?
echo "cut off: $said, status $status, $(grep -c session cut.lines) session"
status=0
head -c 1000 it >changed
printf '\377\377\377\377' >>changed
tail -c +1005 it >>changed
said=$(replay changed 2>&1 >/dev/null | tail -n 1) || true
replay changed >/dev/null 2>&1 || status=$?
echo "damaged: $said, status $status"
status=0
said=$(replay script.stp 2>&1) || status=$?
echo "other file: $said, status $status"
status=0
said=$(replay it -o it 2>&1) || status=$?
echo "itself: $said, status $status"
