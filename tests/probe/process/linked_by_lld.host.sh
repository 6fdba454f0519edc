# Shows: an import stub is entered without a frame, also where the linker describes it nowhere.
# stdout: ^stub 1$
# limit: 60

cat >p.c <<'EOS'
#include <stdio.h>
int main(void) { return puts("x"); }
EOS
gcc -O1 -o p p.c
objcopy --remove-section .eh_frame --remove-section .eh_frame_hdr p bare || cp p bare
echo "stub $("$SPILE" -r "$RELEASE" -p3 -e 'probe process("./bare").plt("puts") { print_ubacktrace() }' | sed -n 's/.*uprobe\.at_entry = \([0-9]*\).*/\1/p')"
