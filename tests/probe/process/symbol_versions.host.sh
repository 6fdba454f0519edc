# Shows: the version of a symbol need not be named, whether the program is stripped or not.
# stdout: ^versions vfun 2$
# stdout: ^stripped vfun 2$
# stdout: ^one version vfun@@V2 1$
# stdout: ^of a stripped one vfun@@V2 1$
# stdout: ^an old one vfun@V1 1$
# limit: 60

cat >version.c <<'EOS'
int old_way(int a) { return a; }
int new_way(int a) { return a + 1; }
asm(".symver old_way,vfun@V1");
asm(".symver new_way,vfun@@V2");
EOS
echo 'V1 { global: vfun; }; V2 { global: vfun; } V1;' >version.map
gcc -O1 -shared -fPIC -Wl,--version-script=version.map -o libv.so version.c
strip -o libstripped.so libv.so
places() { "$SPILE" -r "$RELEASE" -p3 -e "global n probe process(\"./$1\").$2 { n++ }" | grep -c 'uprobe\.offset = ' || true; }
versions() { echo "$("$SPILE" -r "$RELEASE" -l "process(\"./$1\").function(\"$2\")" 2>&1 | sed -n 's/.*function("\([^"]*\)").*/\1/p' | sort -u) $(places $1 "function(\"$2\")")"; }
echo "versions $(versions libv.so vfun)"
echo "stripped $(versions libstripped.so vfun)"
echo "one version $(versions libv.so vfun@@V2)"
echo "of a stripped one $(versions libstripped.so vfun@@V2)"
echo "an old one $(versions libstripped.so vfun@V1)"
