# Shows: the scripts of a package enable and start its service when it is installed; an upgrade does not do so again, so what has
# been disabled stays so; a service of the initramfs has that made again, also when it is removed; nothing is left behind.
# limit: 100
# stdout: ^installed: enable restart$
# stdout: ^upgraded: try-restart$
# stdout: ^upgraded, stopped: try-restart$
# stdout: ^upgraded, failed: restart$
# stdout: ^in the initramfs: try-restart update-initramfs$
# stdout: ^removed: disable stop -d update-initramfs$
# stdout: ^left: etc etc/beat_counter.conf lib lib/modules lib/modules/1 log run$
# stdout: ^installed again: enable restart update-initramfs$
# stdout: ^rpm: the same$

"$SPILE" -r "$RELEASE" -p4 -m beat_counter -e 'probe timer.s(1) { n++ } probe end { println(n) } global n' >/dev/null
"$SPILE" package beat_counter beat_counter.ko >/dev/null
dpkg-deb -e spile-beat-counter_*_amd64.deb control
mkdir bin
printf '#!/bin/sh\ncd "%s"\ncase $1 in daemon-reload) ;; -q) [ -e "$2" ] ;; *) echo "$1" >>log ;; esac\n' "$PWD" >bin/systemctl
printf '#!/bin/sh\n[ "$1" = -d ] && echo "$1" >>"%s/log"\n:\n' "$PWD" >bin/spilerun
printf '#!/bin/sh\necho "${0##*/}" >>"%s/log"\n' "$PWD" >bin/update-initramfs
chmod +x bin/*
# here FILE: with the directories of the host below the working directory, and / as for process 1.
here() {
	sed -i "s|/etc/spile|$PWD/root/etc|g; s|/var/lib/spile|$PWD/root/state|g; s|/usr/lib/modules|$PWD/root/lib/modules|g
		s|/run/systemd/system|$PWD/root/run|g; s|/proc/1/root/.|/|g" "$@"
}
here control/p*
mkdir -p root/etc root/lib/modules/1/spile root/run
# run SCRIPT WORD...: prints what was called.
run() {
	: >log
	PATH=$PWD/bin:$PATH sh "$@" || echo "status $?"
	tr '\n' ' ' <log | sed 's/ $//'
}
: >root/etc/beat_counter.conf
echo "installed: $(run control/postinst configure)"
echo "upgraded: $(run control/prerm upgrade 2)$(run control/postinst configure 1)"
: >is-enabled
echo "upgraded, stopped: $(run control/postinst configure 1)"
: >is-failed
echo "upgraded, failed: $(run control/postinst configure 1)"
rm is-enabled is-failed
echo 'EARLY=yes' >root/etc/beat_counter.conf
echo "in the initramfs: $(run control/postinst configure 1)"
: >root/lib/modules/1/spile/beat_counter.ko
echo "removed: $(run control/prerm remove) $(run control/postrm remove)"
mv log root/log
echo "left: $(cd root && find . -mindepth 1 | sed 's|^\./||' | sort | tr '\n' ' ' | sed 's/ $//')"
echo "installed again: $(run control/postinst configure 1)"

for tag in POSTIN PREUN POSTUN; do rpm --dbpath "$PWD/db" -qp --qf "%{$tag}" spile-beat-counter-*.rpm >$tag; done
here POSTIN PREUN POSTUN
mkdir -p root/lib/modules/1/spile
same=$(run POSTIN 2)
[ "$same" = 'try-restart update-initramfs' ] || echo "rpm, upgraded: $same"
same=$(run PREUN 1)$(run POSTUN 1)
[ -z "$same" ] || echo "rpm, the old one goes: $same"
same=$(run PREUN 0)
rm root/etc/beat_counter.conf
same="$same $(run POSTUN 0)"
[ "$same" = 'disable stop -d update-initramfs' ] || echo "rpm, removed: $same"
same=$(run POSTIN 1)
[ "$same" = 'enable restart' ] && echo 'rpm: the same' || echo "rpm, installed: $same"
