# Shows: a warning where the result that $return reads may have been removed by the compiler, and none where it is there, or where
# @defined only asks.
# stdout: ^g: warning\[W0113\]: `\$return` may be anything.*$
# stdout: ^g: .*`g\.isra\.0`
# stdout: ^kept: nothing$
# stdout: ^asked: nothing$

cat >removed.c <<'EOC'
int total;
static __attribute__((noinline)) int g(int *a) { total += *a; return total * 3; }
__attribute__((noinline)) int kept(int a) { total += a; return total * 3; }
int main(int c, char **v) { g(&c); g(&total); return kept(total); }
EOC
gcc -g -O2 -o removed removed.c
nm removed | grep -q ' g\.isra\.0$'
warned() { # warned NAME FUNCTION EXPRESSION
  "$SPILE" -r "$RELEASE" -p2 -e "probe process(\"./removed\").function(\"$2\").return { println($3) }" >/dev/null 2>err
  { grep -E 'W0113|isra' err || echo nothing; } | sed "s/^/$1: /"
}
warned g g '$return'
warned kept kept '$return'
warned asked g '@defined($return)'
