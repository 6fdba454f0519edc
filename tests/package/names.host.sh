# Shows: the packages with SystemTap's program names replace its packages and contain working links and programs.
# limit: 240
# stdout: ^spile-staprun_.*_amd64\.deb$
# stdout: ^spile-stap_.*_amd64\.deb$
# stdout: ^spile-stap Provides systemtap \(= 5\.6\), systemtap-client \(= 5\.6\), systemtap-devel \(= 5\.6\)$
# stdout: ^spile-stap Conflicts systemtap, systemtap-client, systemtap-devel$
# stdout: ^spile-stap Replaces systemtap, systemtap-client, systemtap-devel$
# stdout: ^spile-staprun Conflicts systemtap-runtime$
# stdout: ^stap is /usr/bin/spile$
# stdout: ^staprun is /usr/sbin/spilerun$
# stdout: ^stapio is /usr/sbin/spilerun$
# stdout: ^rpm conflicts systemtap systemtap-client systemtap-devel$
# stdout: ^a script's first line 0$
# stdout: ^prep 0 .*headers of .*: there .*debug information of .*: there$
# stdout: ^prep of none 1$
# stdout: ^prep, wrong 1$
# stdout: ^prep of two 1$
# stdout: ^prep, part of a name 1 .*knows no package linux-headers-6.1.0 
# stdout: ^report without passwords: DEBUGINFOD_URLS=https://\.\.\.@host/ http://other/$
# stdout: ^report 0: == spile == == system == == packages == == kernel log ==$

cp -r "$CACHE" cache
export SPILE_CACHE_DIR=$PWD/cache
"$XTASK" package --names "$PWD" | sed 's|.*/||' | grep deb
field() { echo "$1 $2 $(dpkg-deb -f "$1"_*.deb "$2")"; }
for name in Provides Conflicts Replaces; do field spile-stap $name; done
field spile-staprun Conflicts
for package in *.deb; do dpkg-deb -x "$package" root; done
at() { echo "$1 is $(realpath -m "root/$(dirname "$2")/$(readlink "root/$2")" | sed "s|^$PWD/root||")"; }
at stap usr/bin/stap
at staprun usr/bin/staprun
at stapio usr/lib/systemtap/stapio
echo "rpm conflicts $(rpm --dbpath "$PWD/db" -qp --conflicts spile-stap-*.rpm | xargs)"
ln -s "$SPILE" root/usr/bin/spile
printf '#!%s -p1\nprobe begin { exit() }\n' "$PWD/root/usr/bin/stap" >first.stp
chmod 755 first.stp
./first.stp >/dev/null && echo "a script's first line $?"
export SPILE
mkdir none
printf "#!/bin/sh\necho 1000\n" >none/id
chmod 755 none/id
prep=root/usr/bin/stap-prep
echo "prep $($prep "$RELEASE" >out 2>&1; echo $? $(cat out))"
PATH=$PWD/none:/usr/bin:/bin $prep -q 9.9.9-none </dev/null >/dev/null 2>&1 || echo "prep of none $?"
$prep --no-such 2>/dev/null || echo "prep, wrong $?"
$prep 6.1.0 6.1.1 2>/dev/null || echo "prep of two $?"
# As root: what would be installed.
printf "#!/bin/sh\necho 0\n" >none/id
printf '#!/bin/sh\necho linux-headers-6.1.0-1-amd64 linux-headers-6x1.0 | xargs -n 1\n' >none/apt-cache
printf '#!/bin/sh\necho installed "$@"\n' >none/apt-get
chmod 755 none/apt-*
PATH=$PWD/none:/usr/bin:/bin $prep 6.1.0 >out 2>&1 || echo "prep, part of a name" $? $(cat out)
echo "report without passwords: $(DEBUGINFOD_URLS='https://me:secret@host/ http://other/' root/usr/bin/stap-report | grep DEBUGINFOD_URLS)"
root/usr/bin/stap-report >report && echo "report $?: $(grep -E '^== (spile|system|packages|kernel log) ==' report | xargs)"
