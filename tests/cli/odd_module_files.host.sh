# Shows: -d FILE in listings, --check and --guest, by each way to name a module's file, and with files that are not modules, are cut off,
# have no debug information, are for another architecture or release: the result, or the reason and the documented status.
# limit: 300
# stdout: ^relative: list 0, check 0$
# stdout: ^absolute: list 0, check 0$
# stdout: ^compressed: list 0, check 0$
# stdout: ^other release: list 0 was built for kernel 9, check 0 was built for kernel 9$
# stdout: ^directory: list 1 a directory, check 1 a directory, guest 1 a directory$
# stdout: ^missing: list 1 there is no such file, check 1 there is no such file, guest 1 there is no such file$
# stdout: ^text: list 1 not an ELF file, check 2 not an ELF file$
# stdout: ^empty: list 1 not an ELF file, check 2 not an ELF file$
# stdout: ^cut off: list 1 section header, check 2 section header$
# stdout: ^no debug information: list 1 KCFLAGS=-g, check 2 KCFLAGS=-g$
# stdout: ^architecture: list 1 for Aarch64, not X86_64, check 2 for Aarch64, not X86_64, guest 10 Invalid architecture$
# stdout: ^another module: list 1 looked at .*other_name.ko, check 1 gone$

for file in $MODULES; do case $file in */ptlrpc.ko) module=$file ;; esac; done
point='module("ptlrpc").function("ldlm_resource_dump")'
echo "probe $point { exit() }" >script.stp
"$SPILE" -r "$RELEASE" -d "$module" -p4 -m compiled script.stp >/dev/null

# try FILE REASON MODE...: in each mode, the status and REASON, if it is in the output
try() {
  file=$1 reason=$2 results=
  shift 2
  for mode; do
    status=0
    case $mode in
      list) "$SPILE" -r "$RELEASE" -d "$file" -l "$point" >out 2>&1 || status=$? ;;
      check) "$SPILE" --check script.stp -d "$file" --kernel "$RELEASE" --kernel "$RELEASE" >out 2>&1 || status=$? ;;
      guest) "$SPILE" --guest -d "$file" compiled.ko >out 2>&1 || status=$? ;;
    esac
    found=$([ -n "$reason" ] && tr '\n' ' ' <out | grep -o -m 1 "$reason" | head -n 1) || true
    results="$results, $mode $status${found:+ $found}"
    [ $status = 0 ] || [ -n "$found" ] || cat out >&2
  done
  echo "$name: ${results#, }"
}
mkdir good dir compressed other text empty cut none foreign
cp "$module" good/
name=relative try good/ptlrpc.ko '' list check
name=absolute try "$PWD/good/ptlrpc.ko" '' list check
xz -c good/ptlrpc.ko >compressed/ptlrpc.ko.xz
name=compressed try compressed/ptlrpc.ko.xz '' list check
sed "s/vermagic=$RELEASE/vermagic=$(echo "$RELEASE" | tr 0-9 9)/" good/ptlrpc.ko >other/ptlrpc.ko
name='other release' try other/ptlrpc.ko 'was built for kernel 9' list check
name=directory try dir 'a directory' list check guest
name=missing try missing/ptlrpc.ko 'there is no such file' list check guest
echo 'a text' >text/ptlrpc.ko
name=text try text/ptlrpc.ko 'not an ELF file' list check
: >empty/ptlrpc.ko
name=empty try empty/ptlrpc.ko 'not an ELF file' list check
head -c 3000 good/ptlrpc.ko >cut/ptlrpc.ko
name='cut off' try cut/ptlrpc.ko 'section header' list check
objcopy --strip-debug --remove-section .BTF good/ptlrpc.ko none/ptlrpc.ko
name='no debug information' try none/ptlrpc.ko 'KCFLAGS=-g' list check
cp good/ptlrpc.ko foreign/
# e_machine: EM_AARCH64
printf '\267\000' | dd of=foreign/ptlrpc.ko bs=1 seek=18 conv=notrunc 2>/dev/null
name=architecture try foreign/ptlrpc.ko 'for Aarch64, not X86_64\|Invalid architecture' list check guest
cp good/ptlrpc.ko good/other_name.ko
name='another module' try good/other_name.ko 'looked at .*other_name.ko\|gone' list check
