# Shows: a kernel that does not check signatures: members of spilesys run modules from elsewhere that sign-file has signed with a
# key whose certificate root has put into /etc/spile/keys, and no others; a wrong certificate is reported.
# limit: 240
# stdout: ^enforced: N$
# stdout: ^no keys: 4 .*there is no certificate in /etc/spile/keys: put the signer's there
# stdout: ^trusted: 0 loaded signed$
# stdout: ^detached: 4 .*this one is not signed: sign it
# stdout: ^unknown key: 4 .*this one is not signed with a key in /etc/spile/keys
# stdout: ^unknown key's signature appended: 3 .*twice.ko has changed since spile built it
# stdout: ^taken from another: 4 .*not signed with a key in
# stdout: ^guru: 4 .*compiled in guru mode
# stdout: ^renamed: 2 .*signed, and -R would change it
# stdout: ^spileusr: 4 .*members of spileusr may only run modules in
# stdout: ^writable: 4 WARNING: /etc/spile/keys/trusted.x509: .*others can write to it; ERROR: .*there is no certificate in
# stdout: ^PEM: 4 WARNING: /etc/spile/keys/trusted.pem: it is PEM, not DER
# stdout: ^left: 0$

cp -r "$CACHE" cache
export SPILE_CACHE_DIR=$PWD/cache
new_key() { openssl req -new -x509 -newkey rsa:2048 -nodes -days 9 -subj "/CN=$1/" -keyout "$1.key" -out "$1.pem" 2>/dev/null; }
new_key trusted && new_key stranger && openssl x509 -in trusted.pem -outform DER -out trusted.x509 || exit
build() {
	name=$1
	shift
	"$SPILE" -r "$RELEASE" -p4 -m "$name" "$@" -e "probe begin { println(\"loaded $name\") exit() }" >/dev/null || exit
}
build signed
cp signed.ko unsigned.ko
"/lib/modules/$RELEASE/build/scripts/sign-file" sha512 trusted.key trusted.x509 signed.ko || exit
# Signed by the right key, and by another one on top of that.
cp signed.ko twice.ko
"/lib/modules/$RELEASE/build/scripts/sign-file" sha512 stranger.key stranger.pem twice.ko || exit
build stranger --sign-key stranger.key --sign-cert stranger.pem
build other
{ cat other.ko; tail -c +$(($(stat -c %s unsigned.ko) + 1)) signed.ko; } >taken.ko
build guru -g --sign-key trusted.key --sign-cert trusted.pem
files=$(for file in signed unsigned twice stranger taken guru; do printf ' --file %s.ko' $file; done)
# shellcheck disable=SC2086
"$XTASK" guest $files --file trusted.x509 --file trusted.pem '
echo "enforced: $(cat /sys/module/module/parameters/sig_enforce)"
printf "spileusr:x:601:usr\nspilesys:x:602:sys\n" >>/etc/group
printf "usr:x:5001:5001::/tmp:/bin/sh\nsys:x:5002:5002::/tmp:/bin/sh\n" >>/etc/passwd
cp /usr/bin/spilerun /usr/bin/suid && chmod 4755 /usr/bin/suid
keys=/etc/spile/keys
mkdir -p /tmp/own $keys && cp *.ko /tmp/own && chown sys /tmp/own/*.ko && chmod 1777 /tmp
# try WHAT USER MODULE [OPTION]
try() {
	status=0
	su "$2" -c "suid $4 /tmp/own/$3.ko" >/tmp/out 2>/tmp/err || status=$?
	echo "$1: $status $(cat /tmp/out /tmp/err | tr "\n" ";" | sed "s/;$//; s/;/; /g")"
}
try "no keys" sys signed
cp trusted.x509 $keys
try trusted sys signed
try detached sys unsigned
try "unknown key" sys stranger
try "unknown key'"'"'s signature appended" sys twice
try "taken from another" sys taken
try guru sys guru
try renamed sys signed -R
try spileusr usr signed
chmod 666 $keys/trusted.x509
try writable sys signed
rm $keys/trusted.x509
cp trusted.pem $keys
try PEM sys signed
echo "left: $(lsmod | grep -c "signed\|stranger\|guru\|other")"
'
