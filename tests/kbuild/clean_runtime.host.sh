# Shows: the runtime's C has no warnings with Kbuild's flags for modules, nor with sparse, if that is installed.
# stdout: ^objects: [1-9]
# stdout: ^complaints: 0$
# limit: 240

cat >kept.stp <<'END_OF_SCRIPT'
probe begin { exit() }
END_OF_SCRIPT
export SPILE_CACHE_DIR=$PWD/cache PATH=$COMPILE_ONCE:$PATH
"$SPILE" -r "$RELEASE" --kbuild --tmpdir "$PWD/work" -p4 -m kept kept.stp >build.log 2>&1 || cat build.log
# The runtime, compiled again from its sources in the module's directory, with make's messages.
cd work/spile-*/kbuild || exit
rm -f spile_plain.o* kept.ko
check=
! command -v sparse >/dev/null || check="C=2 CHECK=sparse"
# shellcheck disable=SC2086
make -C "/lib/modules/$RELEASE/build" M="$PWD" SPILE_MODULE=kept $check modules >make.log 2>&1 || tail make.log
echo "objects: $(ls runtime-c/*.o | wc -l)"
grep -E "^$PWD/.*(warning|error):" make.log || true
echo "complaints: $(grep -cE "^$PWD/.*(warning|error):" make.log)"
