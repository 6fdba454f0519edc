# Shows: `spile --guest FILE.ko` with a module that cannot be loaded in the guest: status 10 and the reason, not a success.
# limit: 240
# stdout: ^compiled 0$
# stdout: ^status 10$
# stdout: ^reason [1-9]

mkdir unfit
cat >unfit/unfit.c <<'EOF'
#include <linux/module.h>
noinline int unfit_work(int n);
noinline int unfit_work(int n) { return n + 1; }
static int __init unfit_init(void) { return unfit_work(1) ? -ENODEV : 0; }
module_init(unfit_init);
MODULE_LICENSE("GPL");
EOF
echo 'obj-m := unfit.o' >unfit/Kbuild
make -C "/lib/modules/$RELEASE/build" M="$PWD/unfit" modules >make.log 2>&1 || cat make.log
status=0
"$SPILE" -r "$RELEASE" -d unfit/unfit.ko -p4 -m probes_unfit -e 'probe module("unfit").function("unfit_work") { }' >/dev/null || status=$?
echo "compiled $status"
status=0
"$SPILE" --guest probes_unfit.ko -d unfit/unfit.ko >out 2>err || status=$?
echo "status $status"
echo "reason $(grep -c 'unfit.*\(No such device\|ENODEV\)' err)"
cat out err
