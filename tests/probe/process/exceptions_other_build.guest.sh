# Shows: if the library that looks for who catches an exception is another one than when the script was compiled, this is reported, and
# the returns are probed all the same; if it is not there, no program uses it, and nothing is reported.
# script: catches exceptions_other_build.stp
# run: true
# stdout: ^other build: done$
library=$(readlink -f /lib/x86_64-linux-gnu/libgcc_s.so.1)
text='libgcc_s.so.1 is not the file that the script was compiled for .*an exception that passes through a function whose return is probed ends a program that uses it'
runs() {
	LD_LIBRARY_PATH=$1 spilerun catches.ko -c unwinds64 >/tmp/output 2>&1 && grep -q '^outer 1$' /tmp/output || { cat /tmp/output; exit 1; }
}
runs ""
! grep WARNING /tmp/output || exit 1
# The loader uses it, too.
mkdir /tmp/kept
mv "$library" /tmp/kept/libgcc_s.so.1
cp "$(readlink -f /lib/x86_64-linux-gnu/libc.so.6)" "$library"
runs /tmp/kept
[ "$(grep -c "$text" /tmp/output)" = 1 ] || { cat /tmp/output; exit 1; }
rm "$library"
runs /tmp/kept
! grep WARNING /tmp/output || exit 1
mv /tmp/kept/libgcc_s.so.1 "$library"
echo "other build: done"
