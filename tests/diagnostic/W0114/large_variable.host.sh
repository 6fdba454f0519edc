# Shows: a warning where debug registers do not suffice for a variable, and none where two do, or where a length is given.
# stdout: ^large: warning\[W0114\]: only the first 8 of 40 bytes are watched$
# stdout: ^two words: nothing, 2$
# stdout: ^length: nothing, 1$
# stdout: ^listed 1$

cat >data.c <<'EOC'
long large[5], words[2];
int main(int count, char **v) { large[1] = words[1] = count; return 0; }
EOC
gcc -g -O0 -o data data.c
warned() { # warned NAME POINT
  "$SPILE" -r "$RELEASE" -p3 -e "global n probe process(\"./data\").$2 { n++ }" >made.c 2>err
  { grep -o 'warning\[W0114\].*' err || echo "nothing, $(grep -c '\.user_watch = ' made.c)"; } | sed "s/^/$1: /"
}
warned large 'data("large").write'
warned 'two words' 'data("words").rw'
warned length 'data("large").length(4).write'
echo "listed $("$SPILE" -r "$RELEASE" -l 'process("./data").data("words").write' | grep -c '^process')"
