# docs/report.png: a report of reads in a guest, in Chromium.
directory=$(mktemp -d)
cat >"$directory/reads.stp" <<'END'
global sizes, began
probe kernel.function("vfs_read") { began[tid()] = gettimeofday_ns(); print_backtrace() }
probe kernel.function("vfs_read").return {
	if (!(tid() in began)) next
	sizes <<< gettimeofday_ns() - began[tid()]
	delete began[tid()]
}
probe timer.ms(200) { print(@hist_log(sizes)) }
END
spile --guest --record "$directory/reads.rec" "$directory/reads.stp" -c 'sh -c "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do md5sum /bin/busybox; done"' >/dev/null 2>&1
spile report "$directory/reads.rec" -o "$directory/page.html"
chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1000,1600 --user-data-dir="$directory/profile" \
	--screenshot="$ROOT/docs/report.png" "$directory/page.html" >/dev/null 2>&1
rm -r "$directory"
