# Shows: a module in the cache is not used when a header that a cast names has changed, or one that this includes.
# stdout: ^first: Pass 4
# stdout: ^again: Pass 2-4: using cached module
# stdout: ^changed: Pass 4

cp -r "$CACHE" cache
export SPILE_CACHE_DIR=$PWD/cache
echo '#include "inner.h"' >outer.h
echo 'struct mine { int a; int b; };' >inner.h
cat >cast.stp <<EOF
probe begin { println(&@cast(4096, "mine", "<$PWD/outer.h>")->b) exit() }
EOF
build() { "$SPILE" -r "$RELEASE" -v -p4 -m cast cast.stp 2>&1 >/dev/null | sed -n "s/^\(Pass 4\|Pass 2-4\)/$1: &/p"; }
build first
build again
echo 'struct mine { int a; long more; int b; };' >inner.h
build changed
