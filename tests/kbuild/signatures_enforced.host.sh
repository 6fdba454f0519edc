# Shows: a kernel that requires signatures loads our signed modules; for one it refuses, the message says why and what to do.
# limit: 240
# stdout: ^enforced: Y$
# stdout: ^loaded signed$
# stdout: ^signed: 0$
# stdout: ^by an unknown key: 4
# stdout: ^unsigned: 4
# stdout: ^left: 0$
# stdout: ^spilesys: signed 0, unknown key 4, unsigned 4, guru 4$
# stdout: ^spileusr: signed 4$
# stdout: ^left after both: 0$
# stderr: ^ERROR: the kernel does not accept the signature of stranger\.ko: .*mokutil --import
# stderr: ^ERROR: this kernel loads signed modules only .* unsigned\.ko is not signed: .*--sign-key

cp -r "$CACHE" cache
export SPILE_CACHE_DIR=$PWD/cache
new_key() { openssl req -new -x509 -newkey rsa:2048 -nodes -days 9 -subj "/CN=$1/" -keyout "$1.key" -out "$1.pem" 2>/dev/null; }
new_key trusted && new_key stranger && openssl x509 -in trusted.pem -outform DER -out trusted.der || exit
build() {
	name=$1
	shift
	"$SPILE" -r "$RELEASE" -p4 -m "$name" "$@" -e "probe begin { println(\"loaded $name\") exit() }" >/dev/null || exit
}
build signed --sign-key trusted.key --sign-cert trusted.pem
build stranger --sign-key stranger.key --sign-cert stranger.pem
build unsigned
build guru -g --sign-key trusted.key --sign-cert trusted.pem
"$XTASK" guest --trust trusted.der --parameter module.sig_enforce=1 --file signed.ko --file stranger.ko --file unsigned.ko --file guru.ko '
echo "enforced: $(cat /sys/module/module/parameters/sig_enforce)"
spilerun signed.ko
echo "signed: $?"
spilerun stranger.ko
echo "by an unknown key: $?"
spilerun unsigned.ko
echo "unsigned: $?"
echo "left: $(lsmod | grep -c "stranger\|unsigned")"
# Members of spilesys, from their own directory.
printf "spileusr:x:601:usr\nspilesys:x:602:sys\n" >>/etc/group
printf "usr:x:5001:5001::/tmp:/bin/sh\nsys:x:5002:5002::/tmp:/bin/sh\n" >>/etc/passwd
cp /usr/bin/spilerun /usr/bin/suid && chmod 4755 /usr/bin/suid
mkdir -p /tmp/own && cp *.ko /tmp/own && cd /tmp/own && chown sys *.ko && chmod 1777 /tmp
status() { su "$1" -c "suid /tmp/own/$2.ko" >/dev/null 2>&1; echo $?; }
echo "spilesys: signed $(status sys signed), unknown key $(status sys stranger), unsigned $(status sys unsigned), guru $(status sys guru)"
echo "spileusr: signed $(status usr signed)"
echo "left after both: $(lsmod | grep -c "signed\|stranger\|guru")"
'
