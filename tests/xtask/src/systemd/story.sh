# Runs in the guest at each boot and checks facts. Prints "ok FACT" or "FAILED FACT", and "end" at the end.
exec >/dev/ttyS1 2>&1
. /root/failure.sh
stage=$(sed 's/.*story=//; s/ .*//' /proc/cmdline)
unit=spile@lu_5642.service

# fact NAME COMMAND...
fact() {
	local name=$1 output
	shift
	if output=$("$@" 2>&1); then
		echo "ok $name"
	else
		echo "FAILED $name: $output"
	fi
}
# soon COMMAND...: within a minute.
soon() {
	local end=$((SECONDS + 60)) output
	until output=$("$@"); do
		[ $SECONDS -lt $end ] || break
		sleep 0.1
	done
	"$@" && return 0
	echo "not within a minute: $*"
	return 1
}
is() { [ "$1" = "$2" ] || { echo "'$1' is not '$2'"; return 1; }; }
active() { [ "$(systemctl is-active $unit)" = active ]; }
loader() { systemctl show -P MainPID $unit; }
in_journal() { journalctl -b -u $unit | grep -q -- "$1" || { journalctl -b -u $unit | tail -n 20; return 1; }; }
rewritten() { spilerun status lu_5642 | sed -n 's/.*rewritten \([0-9]*\),.*/\1/p'; }
# A different loader.
back() { active && [ "$(loader)" != "$1" ]; }
# The installed kernel that is not running.
other_kernel() { ls /boot/vmlinuz-* | sed 's/.*vmlinuz-//' | grep -v "^$(uname -r)$"; }
# configure LINES: sets the contents of /etc/spile/lu_5642.conf.
configure() { printf "EARLY=yes\n$1\n" >/etc/spile/lu_5642.conf; }
# 0, or the loader's exit status.
restart() {
	systemctl reset-failed $unit 2>/dev/null
	systemctl restart $unit 2>/dev/null && echo 0 || systemctl show -P ExecMainStatus $unit
}
place=/lib/modules/$(uname -r)/spile/lu_5642.ko
again='Resource temporarily unavailable'

case $stage in
first)
	fact 'installed by packages, enabled, active after the boot' active
	fact 'the first use after the boot met the workaround' is "$(cat /root/first-use)" "$again"
	fact 'it was there before the root file system' sh -c 'dmesg | grep -n "lu_5642: loading out-of-tree\|EXT4-fs (vda): mounted" | head -n 1 | grep lu_5642'
	fact 'what it printed in the initramfs is in the journal' soon in_journal 'LU-5642 stap started'
	fact 'the unit is hardened' systemd-analyze security --no-pager --threshold=30 $unit
	fact 'the unit locks what all loaders lock' nsenter -m -t "$(loader)" sh -c ': >>/sys/module/kernel/uevent'
	fact 'no restart' is "$(systemctl show -P NRestarts $unit)" 0

	before=$(rewritten)
	old=$(loader)
	kill -KILL "$old"
	fact 'killed loader: the workaround stays' is "$(failure)" "$again"
	fact 'killed loader: the service is back' soon sh -c "[ \$(systemctl is-active $unit) = active ] && [ \$(systemctl show -P MainPID $unit) != $old ]"
	fact 'killed loader: one restart' is "$(systemctl show -P NRestarts $unit)" 1
	fact 'killed loader: counted on' is "$(rewritten)" $((before + 1))
	for turn in 1 2 3; do
		old=$(loader)
		systemctl kill -s KILL $unit
		soon back $old >/dev/null
	done
	old=$(loader)
	echo 1 >/sys/fs/cgroup/system.slice/system-spile.slice/$unit/cgroup.kill
	fact 'killed again and again, and its cgroup: back' soon back $old
	fact 'killed again and again: the workaround stays' is "$(failure)" "$again"
	journal='systemd-journald.socket systemd-journald-dev-log.socket systemd-journald-audit.socket systemd-journald.service'
	systemctl stop $journal 2>/dev/null
	fact 'journal stopped: the workaround stays' is "$(failure)" "$again"
	systemctl start $journal 2>/dev/null
	# The service manager may have preserved the connections.
	systemctl restart $unit
	fact 'journal back: active' active

	umount /mnt
	fact 'target module: removed while it is probed' rmmod lustre
	sh /root/use.sh
	fact 'target module: back, and the workaround with it' is "$(cat /root/first-use)" "$again"

	output=$(spilerun observe lu_5642 2>&1)
	fact 'observe: C that may write is refused' sh -c "echo '$output' | grep 'lu_5642 cannot be run in observe mode: .*(syslog).*--harmless-c'"
	spilerun observe lu_5642 --harmless-c
	fact 'observe: the error is back' is "$(failure)" 'Input/output error'
	fact 'observe: reported in the journal' soon in_journal 'REWRITE: observed, not rewritten by getfattr'
	spilerun enforce lu_5642
	fact 'enforce: the error is gone' is "$(failure)" "$again"
	spilerun enforce lu_5642 --expires 2s
	sleep 3
	fact 'expiry: the error is back' is "$(failure)" 'Input/output error'
	fact 'expiry: reported in the journal' soon in_journal 'has expired: nothing is rewritten any more'

	systemctl stop $unit
	fact 'stop: the error is back at once' is "$(failure)" 'Input/output error'
	fact 'stop: the module is gone' [ ! -e /sys/module/lu_5642 ]
	systemctl start $unit
	fact 'start: the error is gone' is "$(failure)" "$again"

	systemctl stop $unit
	groupadd -r spileusr
	useradd -r -G spileusr someone
	install -m 4755 /usr/sbin/spilerun /usr/local/sbin/by-users
	cp /etc/spile/lu_5642.conf /root/before.conf
	echo START=spileusr >>/etc/spile/lu_5642.conf
	setpriv --reuid someone --regid someone --init-groups /usr/local/sbin/by-users lu_5642 >/root/user.out 2>&1 &
	user=$!
	fact 'a user may start it' soon test -e /sys/module/lu_5642
	fact 'a user had the name: the service is active' is "$(restart)" 0
	fact 'a user has the name: reported' in_journal 'is taken by a session that someone has started'
	fact 'a user had the name: the loader has ended' sh -c "! kill -0 $user"
	cp /root/before.conf /etc/spile/lu_5642.conf
	rm /usr/local/sbin/by-users

	other=$(other_kernel)
	# Runs only our hook, because others build an initramfs, which takes very long in the guest.
	output=$(KERNEL_INSTALL_PLUGINS=/usr/lib/kernel/install.d/95-spile.install kernel-install add "$other" "/boot/vmlinuz-$other" 2>&1)
	fact 'kernel-install: says what will be missing' sh -c "echo '$output' | grep 'lu_5642 has no module for kernel $other'"
	fact 'kernel-install: in the journal too' soon sh -c "journalctl -b -t spile | grep -q $other"
	output=$(/etc/kernel/postinst.d/zz-spile 9.9.9-other 2>&1)
	fact 'kernel hook: says what will be missing' sh -c "echo '$output' | grep 'lu_5642 has no module for kernel 9.9.9-other'"
	fact 'kernel hook: in the journal too' soon sh -c 'journalctl -b -t spile | grep -q 9.9.9-other'
	fact 'service list names the kernels' sh -c "spilerun service list | grep '^lu_5642: .*$(uname -r) yes'"
	;;
other)
	fact 'a kernel without a module: the service has failed' is "$(systemctl is-failed $unit)" failed
	fact 'a kernel without a module: status 5' is "$(systemctl show -P ExecMainStatus $unit)" 5
	fact 'a kernel without a module: the journal has the advice' in_journal 'has no module for kernel'
	spilerun service status lu_5642 >/dev/null 2>&1
	fact 'a kernel without a module: service status is 5' is $? 5
	fact 'a kernel without a module: the error' is "$(cat /root/first-use)" 'Input/output error'

	configure 'MISSING=fetch\nDIRECTORY=/srv/none'
	fact 'fetch: nothing there, status 5' is "$(restart)" 5
	fact 'fetch: nothing there, the journal says where it was looked for' in_journal "/srv/none/$(uname -r)/lu_5642.ko"
	configure 'MISSING=fetch\nDIRECTORY=/srv/modules'
	fact 'fetch: active' is "$(restart)" 0
	fact 'fetch: the error is gone' is "$(failure)" "$again"
	fact 'fetch: it lies in its place' cmp "/srv/modules/$(uname -r)/lu_5642.ko" "$place"
	systemctl stop $unit
	rm "$place"

	configure "MISSING=rebuild\nSCRIPT=/root/lu_5642.stp\nBUILD_OPTIONS=-g -d /root/$(uname -r)/lustre.ko"
	fact 'rebuild: no compiler, status 5' is "$(restart)" 5
	fact 'rebuild: no compiler, the journal says so' in_journal 'spile cannot be started'
	output=$(/usr/lib/kernel/install.d/95-spile.install add "$(uname -r)" 2>&1)
	fact 'rebuild: no compiler, reported before the reboot' sh -c "echo '$output' | grep 'lu_5642 has no module for kernel'"
	ln -s /root/spile /usr/bin/spile
	fact 'rebuild: active' is "$(restart)" 0
	fact 'rebuild: the error is gone' is "$(failure)" "$again"
	fact 'rebuild: the same module, byte for byte' cmp "/srv/modules/$(uname -r)/lu_5642.ko" "$place"
	rm /usr/bin/spile
	fact 'two kernels, a module for each' sh -c "spilerun service list | grep '^lu_5642: $(other_kernel) yes, $(uname -r) yes$\|^lu_5642: $(uname -r) yes, $(other_kernel) yes$'"
	fact 'kernel-install has nothing to say' is "$(/usr/lib/kernel/install.d/95-spile.install add "$(uname -r)" 2>&1)" ''
	configure MISSING=fail
	;;
both)
	fact 'the other kernel with its module: active after the boot' active
	fact 'the other kernel with its module: the first use after the boot met the workaround' is "$(cat /root/first-use)" "$again"
	fact 'dracut: it was there before the root file system' sh -c 'dmesg | grep -n "lu_5642: loading out-of-tree\|EXT4-fs (vda): mounted" | head -n 1 | grep lu_5642'
	fact 'dracut: what it printed in the initramfs is in the journal' soon in_journal 'LU-5642 stap started'
	fact 'dracut: no restart' is "$(systemctl show -P NRestarts $unit)" 0
	;;
last)
	fact 'back on its kernel: active' active
	fact 'back on its kernel: the workaround' is "$(cat /root/first-use)" "$again"
	echo '# by its owner' >>/etc/spile/lu_5642.conf
	fact 'upgrade' dpkg -i --force-confold /root/upgrade.deb
	fact 'upgrade: active' active
	fact 'upgrade: the workaround' is "$(failure)" "$again"
	fact 'upgrade: the configuration is its owner'"'"'s' grep -q '# by its owner' /etc/spile/lu_5642.conf
	fact 'removal' dpkg -r spile-lu-5642
	fact 'removal: the error is back' is "$(failure)" 'Input/output error'
	fact 'removal: the module is gone' [ ! -e /sys/module/lu_5642 ]
	fact 'removal: the unit is gone' sh -c "! systemctl is-enabled $unit"
	fact 'removal: the configuration stays' [ -e /etc/spile/lu_5642.conf ]
	fact 'purge' dpkg -P spile-lu-5642 spile-loader
	rm -rf /var/cache/spile
	fact 'purge: nothing is left' is "$(find /etc /usr /boot /var -xdev \( -name '*spile*' -o -name '*lu_5642*' -o -name '*lu-5642*' \) ! -path '/var/log/*')" ''
	;;
esac
journalctl -b -u $unit -p err --no-pager | tail -n 5
echo end
sync
systemctl poweroff
