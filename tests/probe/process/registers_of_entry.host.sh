# Shows: a probe whose handler or condition asks for registers is at the first instruction of a function compiled without
# optimisation, with its parameters as they are passed; others are where they have been stored.
# stdout: ^plain moved$
# stdout: ^argument first$
# stdout: ^function first$
# stdout: ^condition first$
# stdout: ^both first$
# stdout: ^embedded first$
# stdout: ^embedded expression first$
# stdout: ^embedded otherwise moved$
# stdout: ^lost its value is put where the debug information has it only after the function's entry$
# stdout: ^not lost moved$
# limit: 60

cat >st.c <<'EOS'
struct two { long a, b; };
__attribute__((noinline)) long f(struct two s, int c, int d)
{
	long sum = s.a + s.b + c + d;

	return sum;
}
int main(int count, char **values) { return f((struct two){ count, 2 }, 3, 4); }
EOS
gcc -g -O0 -no-pie -o st st.c
first=$((0x$(nm st | awk '$3 == "f" { print $1 }')))
# show NAME SCRIPT
show() {
  local at
  at=$("$SPILE" -g -r "$RELEASE" -p3 -e "$2" | sed -n 's/.*uprobe\.address = \([0-9]*\)ULL.*/\1/p')
  case "$at" in
    '') echo "$1 nowhere" ;;
    "$first") echo "$1 first" ;;
    *) echo "$1 moved" ;;
  esac
}
f='probe process("./st").function("f")'
show plain "$f { println(\$s->a, \$c, pp()) print_ubacktrace() }"
show argument "$f { println(long_arg(1)) }"
show function "function third() { return own(3) } function own(n) { return int_arg(n) } $f { println(third()) }"
show condition "$f if (@uregister(5) > 1) { println(1) }"
show both "$f { println(int_arg(3) == \$c, long_arg(1) == \$s->a) }"
show embedded "function third:long() %{ STAP_RETVALUE = CONTEXT->uregs->cx; %} $f { println(third(), \$c) }"
show 'embedded expression' "$f { println(%{ CONTEXT->uregs->cx %}) }"
show 'embedded otherwise' "function three:long() %{ STAP_RETVALUE = 3; %} $f { println(three(), \$c) }"
# A variable of the function has no value before its first statement.
echo "lost $("$SPILE" -r "$RELEASE" -p2 -e "$f { println(int_arg(3), \$sum) }" 2>&1 | grep -o 'its value is put.*')"
show 'not lost' "$f { println(\$c, \$sum) }"
