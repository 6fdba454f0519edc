# Shows: the file of a function in a program may be named with the directory where it was compiled.
# stdout: ^found 5$
# stdout: ^elsewhere .*functions of that name are in src/main\.c$
# limit: 60

mkdir -p project/src
echo 'int twice(int a) { return a * 2; } int main(int count, char **values) { return twice(count); }' >project/src/main.c
(cd project && gcc -g -O1 -o ../prog src/main.c)
found=0
for file in main.c src/main.c ./src/main.c project/src/main.c "$PWD/project/src/main.c"; do
  ! "$SPILE" -r "$RELEASE" -l "process(\"./prog\").function(\"twice@$file\")" || found=$((found + 1))
done
echo "found $found"
"$SPILE" -r "$RELEASE" -l 'process("./prog").function("twice@other/src/main.c")' 2>&1 | sed 's/^/elsewhere /' || true
