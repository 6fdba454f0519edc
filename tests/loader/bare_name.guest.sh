# Shows: a module named without a path is one of the running kernel's prebuilt ones, never a file of the working directory, where
# another user may have put it; with a path or an extension it is that file.
# script: ticks ticks.stp
# stdout: ^nowhere else: [1-9][0-9]* .*ticks.*/lib/modules/
# stdout: ^prebuilt: 0$
# stdout: ^a path: 0$

cp ticks.ko ticks
try() { s=0; spilerun "$@" -T 0.2 >out 2>err || s=$?; echo "$s $(cat err)"; }
echo "nowhere else: $(try ticks)"
approve ticks.ko
echo 'not a module' >ticks
echo "prebuilt: $(try ticks | sed 's/ *$//')"
cp ticks.ko ticks
echo "a path: $(try ./ticks | sed 's/ *$//')"
