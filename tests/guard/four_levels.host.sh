# Shows: addresses that are only canonical with five-level page tables are refused while four levels are in use, even if the CPU
# supports five.
# five: reads and writes fail, and the kernel logs nothing. With five levels in use they fail too.
# limit: 300
# stdout: ^no5lvl: faults 7$
# stdout: ^five: faults 7$

"$SPILE" -r "$RELEASE" -p4 -m far -g -e 'global n
function at() { return 0xff00000000001000 }
probe begin {
  try { n += kernel_long(at()) & 0 } catch { n++ }
  try { n += strlen(kernel_string(at())) & 0 } catch { n++ }
  try { n += kernel_char(at() - 4) & 0 } catch { n++ }
  try { n += strlen(kernel_buffer_quoted_error(at(), 16, 40)) & 0 } catch { n++ }
  try { n += @cast(at(), "task_struct")->pid & 0 } catch { n++ }
  try { set_kernel_long(at(), 1) } catch { n++ }
  try { set_kernel_string(at(), "text that is longer than a word") } catch { n++ }
  printf("faults %d\n", n)
  exit()
}' >/dev/null || exit
for parameter in no5lvl quiet; do
	"$XTASK" guest --parameter "$parameter" --parameter panic_on_warn=1 --file far.ko 'spilerun far.ko' >out 2>err || cat err
	case $parameter in no5lvl) echo "no5lvl: $(grep faults out)" ;; *) echo "five: $(grep faults out)" ;; esac
done
