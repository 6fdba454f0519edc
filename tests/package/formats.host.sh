# Shows: a prebuilt module is packaged as .deb and .rpm, which their own tools can read; they contain the files of a service; a
# module under another name is refused. One that exceeds the limit of files is an error, and leaves nothing.
# limit: 200
# stdout: ^./spile-beat-counter_1.5-1_amd64.deb$
# stdout: ^./spile-beat-counter-1.5-1.x86_64.rpm$
# stdout: ^deb holds the module, its configuration and its order$
# stdout: ^rpm holds the same$
# stdout: ^check 0$
# stdout: ^check 5$
# stdout: ^limited 1 0 ERROR: writing small/spile-beat-counter_1.0-1_amd64.deb: File too large
# stdout: ^refused 1 ERROR: .*beat_counter.ko is called beat_counter: build it with spile -m other$

"$SPILE" -r "$RELEASE" -p4 -m beat_counter -e 'probe timer.s(1) { n++ } probe end { println(n) } global n' >/dev/null
echo 'OPTIONS=-v' >beat.conf
"$SPILE" package beat_counter beat_counter.ko --conf beat.conf --set-version 1.5 --before mnt-data.mount --after lustre.service
dpkg-deb -x spile-beat-counter_1.5-1_amd64.deb deb
cmp beat_counter.ko "deb/usr/lib/modules/$RELEASE/spile/beat_counter.ko"
cmp beat.conf deb/etc/spile/beat_counter.conf
printf '[Unit]\nAfter=lustre.service\nBefore=mnt-data.mount\n' | cmp - deb/usr/lib/systemd/system/spile@beat_counter.service.d/order.conf
dpkg-deb -e spile-beat-counter_1.5-1_amd64.deb control
for script in control/postinst control/prerm control/postrm; do sh -n "$script"; done
echo deb holds the module, its configuration and its order
rpm --dbpath "$PWD/db" -K --nosignature spile-beat-counter-1.5-1.x86_64.rpm | grep -q 'digests OK'
mkdir rpm
rpm --dbpath "$PWD/db" -qlp spile-beat-counter-1.5-1.x86_64.rpm | grep -qx "/usr/lib/modules/$RELEASE/spile"
(cd rpm && rpm2cpio ../spile-beat-counter-1.5-1.x86_64.rpm | cpio -idm --quiet)
diff -r deb rpm
echo rpm holds the same
ln -s usr/lib deb/lib
loader=$(dirname "$SPILE")/spilerun
status=0
"$loader" service --root "$PWD/deb" check "$RELEASE" || status=$?
echo "check $status"
status=0
"$loader" service --root "$PWD/deb" check 9.9.9 2>/dev/null || status=$?
echo "check $status"
mkdir small
status=0
(ulimit -f 1 && exec "$SPILE" package beat_counter beat_counter.ko --directory small 2>err) || status=$?
echo "limited $status $(ls -A small | wc -l) $(cat err)"
status=0
"$SPILE" package other beat_counter.ko 2>err || status=$?
echo "refused $status $(cat err)"
