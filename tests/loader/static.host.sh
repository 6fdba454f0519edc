# Shows: the shipped loader is one static program under 3 MB; it runs on a system without anything else.
# limit: 300
# all: yes
# stdout: ^small$
# stdout: ^alone: spilerun [0-9.]*$
# stdout: ^refused 3$

loader=$(cargo xtask static-loader)
[ "$(stat -c %s "$loader")" -lt $((3 << 20)) ]
ldd "$loader" 2>&1 | grep -q 'statically linked\|not a dynamic'
echo small
alone=$(mktemp -d)
trap 'rm -rf "$alone"' EXIT
cp "$loader" "$alone/spilerun"
echo "alone: $(unshare --user --map-root-user chroot "$alone" /spilerun -V)"
status=0
unshare --user --map-root-user chroot "$alone" /spilerun no_such_script 2>/dev/null || status=$?
echo "refused $status"
