# Shows: lines of a function that are of another file than the function itself: by #line, or included in its body.
# stdout: ^line process\("\S*/p"\)\.statement\("parse@parser\.y:121"\)$
# stdout: ^any process\("\S*/p"\)\.statement\("parse@parser\.y:121"\)$
# stdout: ^included process\("\S*/p"\)\.statement\("parse@body\.inc:2"\)$
# stdout: ^other .*`parse@parser\.y:122`
# stdout: ^none .*functions of that name are in p\.c$
# stdout: ^absolute process\("\S*/p"\)\.statement\("parse@\S*parser\.y:121"\)$
# stdout: ^named absolutely process\("\S*/q"\)\.statement\("parse@/made/by/parser\.y:121"\)$
# stdout: ^short process\("\S*/q"\)\.statement\("parse@/made/by/parser\.y:121"\)$
# stdout: ^counted .*\+N counts from the line where a function begins, and no function of that name begins in this file
# stdout: ^beside process\("\S*/r"\)\.statement\("parse@parser\.y:121"\)$
# limit: 60

cat >p.c <<'EOS'
int parse(int token)
{
	switch (token) {
	case 1:
#line 120 "parser.y"
		asm volatile("" : "+r"(token));
		token += 2;
#line 9 "p.c"
		break;
	default:
#include "body.inc"
		break;
	}
	return token;
}
int main(int count, char **values) { return parse(count); }
EOS
printf 'asm volatile("" : "+r"(token));\ntoken *= 3;\n' >body.inc
gcc -g -O0 -o p p.c
sed 's|"parser.y"|"/made/by/parser.y"|' p.c >q.c
gcc -g -O0 -o q q.c
# A function begins in that file, too.
{ cat p.c; printf '#line 300 "parser.y"\nint after(int a)\n{\n\treturn a + 1;\n}\n'; } >r.c
gcc -g -O0 -o r r.c
list() { "$SPILE" -r "$RELEASE" -l "process(\"./${2:-p}\").statement(\"$1\")" 2>&1 || true; }
list 'parse@parser.y:121' | sed 's/^/line /'
list '*@parser.y:121' | sed 's/^/any /'
list '*@body.inc:2' | sed 's/^/included /'
list 'parse@parser.y:122' | sed 's/^/other /'
list 'parse@lexer.l:1' | sed 's/^/none /'
list "parse@$PWD/parser.y:121" | sed 's/^/absolute /'
list 'parse@/made/by/parser.y:121' q | sed 's/^/named absolutely /'
list 'parse@parser.y:121' q | sed 's/^/short /'
list 'parse@parser.y+1' | sed 's/^/counted /'
list '*@parser.y:121' r | sed 's/^/beside /'
