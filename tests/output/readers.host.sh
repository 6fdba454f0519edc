# Shows: other programs read what is written: tshark the packets with their times and comments, Perfetto's own classes (pip install perfetto
# protobuf) the trace with threads and values, Perfetto's trace processor by SQL the same as in the JSON, losses and warnings included, Chromium
# the report, light and dark, 360 to 1920 pixels wide, with the keyboard alone.
# Needs the packages tshark, chromium, chromium-shell (which has the trace processor), nodejs, python3 and python3-pip; Perfetto's classes come
# from PyPI where they are not installed.
# all: yes
# stdout: ^tshark: 127.0.0.1 127.0.0.1 UDP 28 dd [0-9]+ kernel.function\("vfs_read.* pid=[0-9]+$
# stdout: ^perfetto: 7 instants of vfs_read, thread dd, count 5, name dd$
# stdout: ^trace processor: 1 end, [0-9]+ print as in the JSON, 0 errors$
# stdout: ^trace processor: 1 end, [1-9][0-9]* lost, [1-9][0-9]* print, [1-9][0-9]* warning as in the JSON, 0 errors$
# stdout: ^light 360: fits, bright, has colours$
# stdout: ^light 768: fits, bright, has colours$
# stdout: ^light 1920: fits, bright, has colours$
# stdout: ^dark 360: fits, dark, has colours$
# stdout: ^dark 768: fits, dark, has colours$
# stdout: ^dark 1920: fits, dark, has colours$
# stdout: ^without scripts: 3 of 3$
# stdout: ^search reached: true$
# stdout: ^search: 1 frames$
# stdout: ^flame reached: true$
# stdout: ^zoomed: [a-z_0-9A-Z]+ 1$
# stdout: ^all: 1$
# stdout: ^table reached: true$
# stdout: ^sorted: true,true$
# stdout: ^requests: 0$
# limit: 240

cat >script.stp <<'END'
%{ static const unsigned char packet[28] = { 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0x7c, 0xcf, 127, 0, 0, 1, 127, 0, 0, 1, 0, 7, 0, 7, 0, 8, 0, 0 }; %}
function packet:long() %{ /* pure */ STAP_RETVALUE = (long)packet; %}
global sizes
probe kernel.function("vfs_read") {
	if (pid() != target()) next
	printf("%s reads %d\n", execname(), $count)
	print_backtrace()
	sizes <<< $count
	if (@count(sizes) == 7) printf("%.28M of %d\n", packet(), pid())
}
probe end { print(@hist_log(sizes)) }
END
"$SPILE" -g -r "$RELEASE" --guest --record it script.stp -c 'dd if=/dev/zero of=/dev/null bs=5 count=7' 2>err || { cat err; exit 1; }

"$SPILE" replay it --format pcapng -o packets || exit 1
echo "tshark: $(tshark -r packets -T fields -E separator=' ' -e ip.src -e ip.dst -e _ws.col.Protocol -e frame.len -e frame.comment 2>tshark.err)"
sed '/Running as user/d' tshark.err >&2

"$SPILE" replay it --format perfetto -o trace || exit 1
python3 -c 'import perfetto' 2>/dev/null || {
	python3 -m pip install --quiet --target "$PWD/pip" perfetto protobuf >pip.out 2>&1 || { cat pip.out; exit 1; }
	export PYTHONPATH=$PWD/pip
}
python3 - <<'END'
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent
trace = Trace()
trace.ParseFromString(open('trace', 'rb').read())
threads = {p.track_descriptor.uuid: p.track_descriptor.thread.thread_name for p in trace.packet if p.track_descriptor.HasField('thread')}
reads = [p.track_event for p in trace.packet if p.HasField('track_event') and 'vfs_read' in p.track_event.name]
reads = [(e, {a.name: a.int_value or a.string_value for a in e.debug_annotations}) for e in reads]
reads = [(e, values) for e, values in reads if 'count' in values]
assert all(e.type == TrackEvent.TYPE_INSTANT for e, _ in reads)
event, values = reads[0]
print(f"perfetto: {len(reads)} instants of vfs_read, thread {threads[event.track_uuid]}, count {values['count']}, name {values['execname']}")
END

cat >losses.stp <<'END'
probe begin { x = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
	for (i = 0; i < 20000; i++) printf("%s %d\n", x . execname(), -i) }
# When the reader has made room again.
probe timer.ms(300) { exit() }
probe end { warn("a \"warning\"") }
END
"$SPILE" -r "$RELEASE" -s 1 -D MAXACTION=1000000 --guest --record losses losses.stp 2>err || { cat err; exit 1; }
for recording in it losses; do
	"$SPILE" replay "$recording" --format perfetto -o trace
	"$SPILE" replay "$recording" --format json -o "$recording.json"
	python3 "$ROOT/tests/output/trace_processor.py" /usr/lib/chromium/libtest_trace_processor.so trace "$recording.json"
done

"$SPILE" report it -o page.html || exit 1
mkdir -p shots
node "$ROOT/tests/output/browser.mjs" page.html shots
