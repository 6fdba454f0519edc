# Shows: a name used by a part of the kernel or another module is reported as such, and -R loads the module under another one.
# script: printk tests/lifecycle/hello.stp
# script: lustre tests/lifecycle/hello.stp
# script: ticks ticks.stp
# modules: lustre
# stdout: ^part 6 ERROR: the running kernel has a built-in module printk \(/sys/module/printk\): load this one under another name \(-R\)
# stdout: ^module 6 ERROR: another module lustre is loaded, which spile did not build: load this one under another name \(-R\)
# stdout: ^session 6 ERROR: module ticks is already loaded and in use: .*attach to its session \(spilerun -A ticks\)
# stdout: ^renamed 0$

try() {
	name=$1
	shift
	status=0
	"$@" >out 2>err || status=$?
	echo "$name $status $(cat err)"
}
try part spilerun printk.ko
try module spilerun ./lustre.ko
start ticks ready
try session spilerun ticks.ko
stop TERM
status=0
spilerun -R printk.ko >out || status=$?
echo "renamed $status"
