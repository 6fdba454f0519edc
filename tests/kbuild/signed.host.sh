# Shows: a module from the cache is signed with the user's key; a wrong key is reported.
# stdout: ^signed: (CMS )?Verification successful
# stdout: ^signed from the cache: (CMS )?Verification successful
# stdout: ^by a directory: (CMS )?Verification successful
# stdout: ^signer: signed by the test$
# stdout: ^unsigned: no signature$
# absent: not refused
# stderr: the module could not be signed
# stderr: no key to sign the module with
# stderr: looked at .*MOK\.priv
# stderr: --sign-cert

cp -r "$CACHE" cache
export SPILE_CACHE_DIR=$PWD/cache
openssl req -new -x509 -newkey rsa:2048 -nodes -days 9 -subj '/CN=signed by the test/' -keyout key.pem -out cert.pem 2>/dev/null || exit
build() { rm -f signed.ko; "$SPILE" -r "$RELEASE" -p4 -m signed "$@" -e 'probe begin { exit() }' >/dev/null; }
# struct module_signature: the last 12 bytes before the 28 of the magic; the last 4 of it are the signature's length.
verify() {
	size=$(stat -c %s signed.ko)
	[ "$(tail -c 28 signed.ko)" = '~Module signature appended~' ] || { echo "$1: no signature"; return; }
	length=$((0x$(tail -c 32 signed.ko | head -c 4 | od -An -tx1 | tr -d ' \n')))
	head -c $((size - 40 - length)) signed.ko >module
	tail -c $((length + 40)) signed.ko | head -c $length >signature
	echo "$1: $(openssl cms -verify -binary -inform DER -in signature -content module -certfile cert.pem -nointern -noverify -out /dev/null 2>&1)"
}
build --sign-key key.pem --sign-cert cert.pem
verify signed
build --sign-key key.pem --sign-cert cert.pem
verify 'signed from the cache'
mkdir keys
cp key.pem keys/MOK.priv
openssl x509 -in cert.pem -outform DER -out keys/MOK.der
build --sign-module=keys
verify 'by a directory'
echo "signer: $(/sbin/modinfo -F signer ./signed.ko)"
build
verify unsigned
refused() { ! build "$@" || echo "not refused: $*"; }
refused --sign-key cert.pem --sign-cert cert.pem
mkdir none
refused --sign-module=none
refused --sign-key key.pem
