# Shows: libraries of a program that only DT_RPATH of the program leads to, also those that a library needs, and LD_LIBRARY_PATH; DT_RUNPATH
# of the program is for what it needs itself.
# stdout: ^rpath process\("\S*/own/libbb\.so"\)\.function\("b"\)$
# stdout: ^runpath error\[E0303\]
# stdout: ^environment process\("\S*/own/libbb\.so"\)\.function\("b"\)$
# stdout: ^before process\("\S*/other/libbb\.so"\)\.function\("b"\)$
# stdout: ^preloaded process\("\S*/other/libbb\.so"\)\.function\("b"\)$
# stdout: ^lib process\("\S*/lib64/libbb\.so"\)\.function\("b"\)$
# limit: 60

mkdir -p own other
echo 'int b(void) { return 1; }' >b.c
echo 'int b(void); int a(void) { return b(); }' >a.c
echo 'int a(void); int main(void) { return a(); }' >main.c
for directory in own other; do
  gcc -O1 -shared -fPIC -Wl,-soname,libbb.so -o $directory/libbb.so b.c
  gcc -O1 -shared -fPIC -Wl,-soname,libaa.so -o $directory/libaa.so a.c -L$directory -lbb
done
gcc -O1 -o with_rpath main.c -Lown -laa -Wl,-rpath,"$PWD/own",--disable-new-dtags -Wl,-rpath-link,own
gcc -O1 -o with_runpath main.c -Lown -laa -Wl,-rpath,"$PWD/own",--enable-new-dtags -Wl,-rpath-link,own
list() { "$SPILE" -r "$RELEASE" -l "process(\"./$1\").library(\"libbb.so\").function(\"b\")" 2>&1 || true; }
list with_rpath | sed 's/^/rpath /'
list with_runpath | sed 's/^/runpath /'
export LD_LIBRARY_PATH=$PWD/own
list with_runpath | sed 's/^/environment /'
export LD_LIBRARY_PATH=$PWD/other
list with_runpath | sed 's/^/before /'
unset LD_LIBRARY_PATH
# Into spile's process, too.
gcc -O1 -o alone -x c - <<'EOC'
int main(void) { return 0; }
EOC
LD_PRELOAD=$PWD/other/libbb.so list alone | sed 's/^/preloaded /'
mkdir -p lib64
cp own/*.so lib64
gcc -O1 -o with_lib main.c -Lown -Wl,--no-as-needed -laa -lbb -Wl,-rpath,'$ORIGIN/$LIB',--enable-new-dtags -Wl,-rpath-link,own
list with_lib | sed 's/^/lib /'
