// SPDX-License-Identifier: GPL-2.0-or-later

//! The meaning of each construct, shown by the printed tree: parentheses mark its structure.

use super::*;
use crate::print;
use ast::*;

/// The script's tree as text; checks that there are no errors and that the text parses to the same tree.
fn printed(text: &str) -> String {
    let (script, shown) = try_parse(text);
    assert_eq!(shown, "", "{text}");
    let first = print::script(&script);
    let (again, shown) = try_parse(&first);
    assert_eq!(shown, "", "{first}");
    assert_eq!(print::script(&again), first);
    first
}

/// The statements of a handler, a line each.
fn statements(text: &str) -> Vec<String> {
    let printed = printed(&format!("probe begin {{ {text} }}"));
    printed.lines().skip(1).take_while(|line| *line != "}").map(|line| line[2..].to_string()).collect()
}

/// Checks that both parse to the same tree.
fn same(left: &str, right: &str) {
    assert_eq!(statements(left), statements(right), "{left}");
}

fn expr(text: &str) -> Expr {
    let (script, shown) = try_parse(&format!("probe begin {{ {text} }}"));
    assert_eq!(shown, "", "{text}");
    match &script.items[..] {
        [Item::Probe(probe)] => match &probe.body.statements[..] {
            [Stmt { kind: StmtKind::Expr(expr), .. }] => expr.clone(),
            other => panic!("{text}: {other:?}"),
        },
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn precedence_from_loose_to_tight() {
    same("a = b ? c : d", "a = (b ? c : d)");
    same("a = b = c", "a = (b = c)");
    same("a <<< b + c", "a <<< (b + c)");
    same("a ? b : c ? d : e", "a ? b : (c ? d : e)");
    same("a ? b = c : d = e", "a ? (b = c) : (d = e)");
    same("a || b && c", "a || (b && c)");
    same("a && b | c", "a && (b | c)");
    same("a | b ^ c & d", "a | (b ^ (c & d))");
    same("a & b in c", "a & (b in c)");
    same("a == b in c", "(a == b) in c");
    same("a < b << c", "a < (b << c)");
    same("a << b . c", "a << (b . c)");
    same("a . b + c", "a . (b + c)");
    same("a + b * c", "a + (b * c)");
    same("-a * !b", "(-a) * (!b)");
    same("-a++ + ++b", "(-(a++)) + (++b)");
    same("-$a->b[c]", "-($a->b[c])");
    same("&$a->b[c]", "&($a->b[c])");
    same("a =~ \"b\" && c !~ \"d\" \"e\"", "(a =~ \"b\") && (c !~ \"de\")");
    same("a < b == c", "(a < b) == c");
    same("a == b < c", "(a == b) < c");
}

#[test]
fn left_associative() {
    for op in ["||", "&&", "|", "^", "&", "==", "<", "<<", ">>>", ".", "+", "-", "*", "/", "%"] {
        same(&format!("a {op} b {op} c"), &format!("(a {op} b) {op} c"));
        assert_ne!(statements(&format!("a {op} b {op} c")), statements(&format!("a {op} (b {op} c)")), "{op}");
    }
}

#[test]
fn parentheses_are_kept_where_needed() {
    for text in [
        "(a + b) * c",
        "a - (b - c)",
        "- --a",
        "(a = b) + c",
        "(a ? b : c) ? d : e",
        "(a =~ \"b\") == c",
        "(&a)->b",
        "(a + b)[c]",
        "(a in b) == c",
        "!(a && b)",
        "(-a)->b",
        "(a++)[b]",
        "a[b = c]",
    ] {
        assert_eq!(statements(text), [format!("{text};")]);
    }
    assert_eq!(statements("x = (a + b) * c % (d)"), ["x = (a + b) * c % d;"]);
    assert_eq!(statements("- -a"), ["- -a;"]);
}

#[test]
fn operators_continue_across_newlines() {
    assert_eq!(statements("x = 1 -1"), ["x = 1 - 1;"]);
    assert_eq!(statements("x = 1\n-1"), ["x = 1 - 1;"]);
    assert_eq!(statements("x\n&y"), ["x & y;"]);
    assert_eq!(statements("x = y\n[1]"), ["x = y[1];"]);
    assert_eq!(statements("x\n++\ny"), ["x++;", "y;"]);
    assert_eq!(statements("x = y - -z"), ["x = y - -z;"]);
    assert_eq!(statements("f\n(x)"), ["f(x);"]);
}

#[test]
fn statements_need_no_separator() {
    assert_eq!(statements("print(\"a\") print(\"b\")"), ["print(\"a\");", "print(\"b\");"]);
    assert_eq!(statements("x++ y++"), ["x++;", "y++;"]);
    // An operand has one step.
    assert_eq!(statements("--a\n++a"), ["--a;", "++a;"]);
    assert_eq!(statements("--a[i++]\n++b b++"), ["--a[i++];", "++b;", "b++;"]);
    assert_eq!(statements("--$x->y\n++b + c++"), ["--$x->y;", "++b + c++;"]);
    assert_eq!(statements("x++ ++y"), ["x++;", "++y;"]);
    assert_eq!(statements("x++ -y"), ["x++ - y;"]);
    assert_eq!(statements("a[1] (b)"), ["a[1];", "b;"]);
    assert_eq!(statements("$x (b)"), ["$x;", "b;"]);
    assert_eq!(statements("$p->f (b)"), ["$p->f;", "b;"]);
    assert_eq!(statements("x = 5 (b)"), ["x = 5;", "b;"]);
    assert_eq!(statements("a b c"), ["a;", "b;", "c;"]);
    assert_eq!(statements("x = 1 !y ~z"), ["x = 1;", "!y;", "~z;"]);
    assert_eq!(statements("x = y @count(z) \"s\" 5 %{ 1 %}"), ["x = y;", "@count(z);", "\"s\";", "5;", "%{ 1 %};"]);
    assert_eq!(statements("if (a) -b else ++c -d"), ["if (a)", "  -b;", "else", "  ++c - d;"]);
    assert_eq!(statements("while (a) (b)"), ["while (a)", "  b;"]);
    assert_eq!(statements("a = b; -c; [d, e] in f"), ["a = b;", "-c;", "[d, e] in f;"]);
    assert_eq!(statements("break continue next"), ["break;", "continue;", "next;"]);
    assert_eq!(statements("{ a } -b"), ["{", "  a;", "}", "-b;"]);
    assert_eq!(statements("$x$ $y$$"), ["$x$;", "$y$$;"]);
    assert_eq!(statements("x++ [a, b] in c"), ["x++;", "[a, b] in c;"]);
}

#[test]
fn semicolons_end_or_stand_alone() {
    assert_eq!(statements("a; b;; c"), ["a;", "b;", ";", "c;"]);
    assert_eq!(statements("if (a) b; else c;"), ["if (a)", "  b;", "else", "  c;"]);
    assert_eq!(statements("if (a) ; else ;"), ["if (a)", "  ;", "else", "  ;"]);
    assert_eq!(statements("if (a) { } else { }"), ["if (a) {", "}", "else {", "}"]);
    assert_eq!(statements("while (a);"), ["while (a)", "  ;"]);
    assert_eq!(statements("for (;;) break"), ["for (; ; )", "  break;"]);
    assert_eq!(statements("for (a = 0; a < 3; a++) b"), ["for (a = 0; a < 3; a++)", "  b;"]);
    let returns = "function f() { if (a) return; if (b) return 1 if (c) { return } return -1; }";
    assert_eq!(printed(returns).matches("return;").count(), 2);
}

#[test]
fn else_goes_with_the_nearest_if() {
    assert_eq!(statements("if (a) if (b) c; else d"), ["if (a)", "  if (b)", "    c;", "  else", "    d;"]);
    assert_eq!(
        statements("if (a) while (b) if (c) d; else e"),
        ["if (a)", "  while (b)", "    if (c)", "      d;", "    else", "      e;"]
    );
    assert_eq!(
        statements("if (a) { if (b) c } else if (d) e; else f"),
        ["if (a) {", "  if (b)", "    c;", "}", "else if (d)", "  e;", "else", "  f;"]
    );
}

#[test]
fn foreach_in_all_forms() {
    for head in [
        "k in a",
        "k+ in a",
        "k in a-",
        "[k, l] in a",
        "[k, l-] in a limit 5 + x",
        "v = k in a",
        "v = [k, l] in a+",
        "[k, l] in a[1, *]",
        "[k, l] in a[*, f(x)]- limit n",
        "k in a @count-",
        "k in a @avg+ limit 3",
        "k in a[*] @variance-",
        "b in @hist_log(s[1])",
        "v = b in @hist_linear(s, 0, 10, -1)-",
    ] {
        assert_eq!(statements(&format!("foreach ({head}) x")), [format!("foreach ({head})"), "  x;".to_string()]);
    }
    assert_eq!(statements("foreach (v- = k in a) x")[0], "foreach (v = k in a-)");
    assert_eq!(statements("foreach ([k] in a) x")[0], "foreach (k in a)");
}

#[test]
fn sort_marks_are_distinguished() {
    let sort = |text: &str| match try_parse(&format!("probe begin {{ foreach ({text}) {{ }} }}")).0.items.pop() {
        Some(Item::Probe(probe)) => match &probe.body.statements[0].kind {
            StmtKind::Foreach(foreach) => foreach.sort.map(|sort| (sort.by, sort.descending)),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    assert_eq!(sort("k in a"), None);
    assert_eq!(sort("[k, l-] in a"), Some((SortBy::Key(1), true)));
    assert_eq!(sort("v+ = k in a"), Some((SortBy::Value, false)));
    assert_eq!(sort("k in a-"), Some((SortBy::Value, true)));
    assert_eq!(sort("k in a @max+"), Some((SortBy::Extractor(Extractor::Max), false)));
}

#[test]
fn other_statements() {
    assert_eq!(statements("delete a delete b[1, *]; delete c[x]"), ["delete a;", "delete b[1, *];", "delete c[x];"]);
    assert_eq!(statements("try { a } catch { b }"), ["try {", "  a;", "} catch {", "  b;", "}"]);
    assert_eq!(statements("try { a } catch (m) { b }")[2], "} catch (m) {");
    assert_eq!(statements("if ([a, *] in b) c")[0], "if ([a, *] in b)");
    assert_eq!(statements("if (a+0 in b) c")[0], "if (a + 0 in b)");
}

#[test]
fn targets() {
    for text in [
        "$x",
        "$$vars",
        "$$parms$$",
        "$p->a->b[3]->next",
        "$p[0]",
        "&$p->f",
        "$p->m$",
        "$p[1]$$",
        "$return",
        "x->f",
        "f(1)->g",
        "a[1][2]",
        "a[1]->b",
        "@cast($p, \"struct x\")->f[1]$",
        "@cast(p, \"x\", \"kernel\")",
        "@var(\"n@f.c\")->m",
        "@var(\"n\", \"m\")$$",
        "@defined($x->y)",
        "@entry($x)",
        "@perf(\"c\")",
        "@const(\"N\")",
        "@enum(\"E\")",
        "@enumname(3)",
        "@enumname(3, \"e\", \"m\")",
        "@probewrite(v)",
        "@kregister(1)",
        "@uregister(2)",
        "@kderef(4, p)",
        "@uderef(8, p + 1)",
        "@count(x)",
        "@variance(x[1], 3)",
        "@hist_log(x)[3]",
        "println(@hist_linear(x, -5, 10, 2))",
        "x->string",
    ] {
        assert_eq!(statements(text), [format!("{text};")]);
    }
    assert_eq!(statements("@cast(p, \"a\" \"b\")->$"), ["@cast(p, \"ab\")$;"]);
    assert_eq!(
        expr("$x$$").kind,
        ExprKind::Pretty(Box::new(Expr { kind: ExprKind::Target("$x".into()), span: expr("$x").span }), 2)
    );
}

#[test]
fn the_print_family() {
    for text in [
        "print(a, b)",
        "println()",
        "printd(\", \", a, b)",
        "printdln(\"\", 1, 2)",
        "printf(\"%d\\n\", a)",
        "print_char(65)",
        "x = sprint(a)",
        "x = sprintln(a)",
        "x = sprintd(\":\", a, b)",
        "x = sprintdln(\":\", a, b)",
        "x = sprintf(\"%s\", a)",
    ] {
        assert_eq!(statements(text), [format!("{text};")]);
    }
    match expr("sprintf(\"a\" \"%d\", 1)").kind {
        ExprKind::Print(print) => {
            assert!(print.to_string && !print.newline);
            assert!(
                matches!(&print.form, PrintForm::Format(text, span) if text == b"a%d" && span.end - span.start == 8)
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn literals() {
    assert_eq!(statements("x = 0xff + 010 + 18446744073709551615"), ["x = 255 + 8 + 18446744073709551615;"]);
    assert_eq!(expr("9223372036854775808").kind, ExprKind::Number(i64::MIN));
    assert_eq!(statements(r#"x = "a\001\"\\\t\377" "7""#), [r#"x = "a\001\"\\\t\3777";"#]);
    assert_eq!(statements("x = \"a\" /* b */ # c\n \"d\""), ["x = \"ad\";"]);
}

#[test]
fn names_that_are_types() {
    assert_eq!(statements("x = string(y) . long(z)"), ["x = string(y) . long(z);"]);
    assert_eq!(statements("x = a ? b : string(c)"), ["x = a ? b : string(c);"]);
    assert_eq!(printed("function string(x:long) { return x }").lines().next(), Some("function string(x:long) {"));
}

#[test]
fn probe_points() {
    let points = |text: &str| {
        let (script, shown) = try_parse(&format!("probe {text} {{ }}"));
        match &script.items[..] {
            [Item::Probe(probe)] => probe.points.iter().map(print::point).collect::<Vec<_>>().join(", "),
            other => panic!("{text}: {other:?}\n{shown}"),
        }
    };
    for text in [
        "begin",
        "begin(-10), end(10), error",
        "kernel.function(\"vfs_*\").return.maxactive(5)",
        "process.begin, process(\"/bin/ls\").function(\"main\").callee(\"f\")",
        "syscall.*, vfs.**, *.read.foo*bar, foo2*3",
        "a.b?, c!, d",
        "a? if (x > 1), b if (y in z)",
        "timer.profile, timer.ms(100).randomize(5)",
        "kernel.statement(\"f@a.c:1\").nearest, a.next.if.probe",
    ] {
        assert_eq!(points(text), text);
    }
    assert_eq!(points("{begin, end}"), "begin, end");
    assert_eq!(points("vfs.{read,write}.return"), "vfs.read.return, vfs.write.return");
    assert_eq!(points("a.{b.{c,d},e(1)}.{f,g}?"), "a.b.c.f?, a.b.c.g?, a.b.d.f?, a.b.d.g?, a.e(1).f?, a.e(1).g?");
    assert_eq!(points("kernel.{trace(\"a\")!, trace(\"b\")}"), "kernel.trace(\"a\")!, kernel.trace(\"b\")");
    assert_eq!(points("timer.s($1), f(@2 \"x\")"), "timer.s(10), f(\"two wordsx\")");
    assert_eq!(points("begin ? , end ! if (a)"), "begin?, end! if (a)");
    assert_eq!(points("if, return.x"), "if, return.x");
}

#[test]
fn a_component_ends_at_a_gap() {
    let (_, shown) = try_parse("probe foo bar { }");
    assert!(shown.contains("found `bar`"), "{shown}");
    let (_, shown) = try_parse("probe foo * { }");
    assert!(shown.contains("found `*`"), "{shown}");
}

#[test]
fn aliases() {
    let head = |text: &str| printed(text).lines().filter(|line| !line.starts_with(' ')).collect::<Vec<_>>().join("\n");
    assert_eq!(head("probe a.b(\"x\") = begin, end { x }"), "probe a.b(\"x\") = begin, end {\n}");
    assert_eq!(head("probe a += begin { x }"), "probe a += begin {\n}");
    assert_eq!(head("probe a = b = begin { x }"), "probe a = b = begin {\n}");
    assert_eq!(head("probe a = begin { x }, { y } probe end { z }"), "probe a = begin {\n}, {\n}\nprobe end {\n}");
    match &try_parse("probe a = b = begin { x }, { y }").0.items[..] {
        [Item::Alias(alias)] => {
            assert_eq!(alias.names.len(), 2);
            assert!(alias.prologue.is_some() && alias.epilogue.is_some());
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn globals() {
    let text = "global a, b%, c[100], d%[10], e = 5, f = -1, g = \"s\" private h private global i%[$1]; global j";
    let expected = [
        "global a",
        "global b%",
        "global c[100]",
        "global d%[10]",
        "global e = 5",
        "global f = -1",
        "global g = \"s\"",
        "private global h",
        "private global i%[10]",
        "global j",
    ];
    assert_eq!(printed(text).lines().collect::<Vec<_>>(), expected);
}

#[test]
fn functions() {
    let head = |text: &str| printed(text).lines().next().unwrap_or("").to_string();
    assert_eq!(head("function f() { }"), "function f() {");
    assert_eq!(head("function f:string(a, b:long, c:string) { }"), "function f:string(a, b:long, c:string) {");
    assert_eq!(head("private function f(a):5 { }"), "private function f(a):5 {");
    assert_eq!(head("function f:long (a) %{ return 1; /* } */ %}"), "function f:long(a) %{ return 1; /* } */ %}");
    assert_eq!(printed("%{ #include <x.h> %}\n%{ int y; %}"), "%{ #include <x.h> %}\n%{ int y; %}\n");
}

#[test]
fn conditionals_choose() {
    let chosen = |condition: &str| printed(&format!("%( {condition} %? global yes %: global no %)")) == "global yes\n";
    for condition in [
        "kernel_v >= \"6.1\"",
        "kernel_v == \"6.1.0\"",
        "kernel_v < \"6.10\"",
        "kernel_vr == \"6.1.0-*-amd64\"",
        "kernel_v != \"5.*\"",
        "arch == \"x86_64\" || arch == \"i386\"",
        "arch == \"x86*\"",
        "CONFIG_SMP == \"y\"",
        "CONFIG_HZ == 250",
        "CONFIG_HZ > 100",
        "CONFIG_NOTHING == \"\"",
        "CONFIG_NOTHING != 1",
        "CONFIG_SMP != CONFIG_HZ",
        "systemtap_v >= \"4.0\"",
        "guru_mode == 1",
        "systemtap_privilege == \"stapdev\"",
        "runtime == \"kernel\"",
        "$# == 2",
        "@2 == \"two words\"",
        "$1 == 10",
        "@# == \"2\"",
        "1 == 2 || 1 == 1 && 2 == 2",
        "\"a\" < \"b\"",
    ] {
        assert!(chosen(condition), "{condition}");
    }
    for condition in ["kernel_v > \"6.1.0\"", "1 == 1 && 1 == 2", "1 == 2 && 1 == 1 || 3 == 4", "CONFIG_NOTHING == 1"] {
        assert!(!chosen(condition), "{condition}");
    }
}

#[test]
fn conditionals_nest_and_hide() {
    let text =
        "probe begin { x = %( 1 == 1 %? %( 1 == 2 %? 1 %: 2 %) %: 3 %) + %( 1 == 2 %? 4 %: 5 %) %( 1 == 2 %? 6 %) }";
    assert_eq!(printed(text).lines().nth(1), Some("  x = 2 + 5;"));
    // A branch not taken may contain anything that is closed.
    assert_eq!(
        printed("%( 1 == 2 %? probe { ( \"unclosed\n @nothing $99 %( x %? y %) 09 %: global a %)"),
        "global a\n"
    );
    assert_eq!(printed("%( 1 == 2 %? @define m %( 1 %) %) @define m %( 2 %) global a = @m"), "global a = 2\n");
    assert_eq!(statements("print(\"a\" %( 1 == 1 %? \"b\" %) \"c\")"), ["print(\"abc\");"]);
    assert_eq!(printed("%( 1 == 1 %? probe begin { x %: probe end { y %) }").lines().next(), Some("probe begin {"));
}

#[test]
fn macros_expand() {
    let define = "@define one %( 1 %) @define add(a, b) %( @a + @b %) @define call(f, x) %( @f(@x) %)
        @define twice(x) %( @add(@x, @x) %) @define swap(a, b) %( @add(@b, @a) %)
        @define word %( \"w\" %) @define maybe(x) %( %( @x == 1 %? yes %: no %) %)";
    let value = |call: &str| {
        printed(&format!("{define} probe begin {{ x = {call} }}")).lines().nth(1).unwrap_or("").to_string()
    };
    assert_eq!(value("@one"), "  x = 1;");
    assert_eq!(value("@add(1, f(2, 3))"), "  x = 1 + f(2, 3);");
    assert_eq!(value("@add(a[1, 2], ([3, 4] in b))"), "  x = a[1, 2] + ([3, 4] in b);");
    assert_eq!(value("@twice(@twice(@one))"), "  x = 1 + 1 + 1 + 1;");
    // Arguments are text, not values: no parentheses are added.
    assert_eq!(value("@add(1, 2) * 3"), "  x = 1 + 2 * 3;");
    assert_eq!(value("@call(sprint, @one)"), "  x = sprint(1);");
    // A parameter refers to what the caller wrote, even under the same name.
    assert_eq!(value("@swap(p, q)"), "  x = q + p;");
    assert_eq!(value("\"a\" @word \"b\""), "  x = \"awb\";");
    assert_eq!(value("@maybe(1) + @maybe(@one) + @maybe(2)"), "  x = yes + yes + no;");
    // A comma inside a conditional does not split arguments.
    assert_eq!(value("@call(f %( 1 == 2 %? , %), 2)"), "  x = f(2);");
}

#[test]
fn macros_without_parameters_take_no_parentheses() {
    assert_eq!(
        printed("@define f %( g %) probe begin { x = @f(1) y = @f (2) }").lines().skip(1).take(2).collect::<Vec<_>>(),
        ["  x = g(1);", "  y = g(2);"]
    );
}

#[test]
fn a_macro_hides_an_operator() {
    let (script, shown) = try_parse("@define min(a) %( @a + 1 %) probe begin { x = @min(2) }");
    assert!(shown.starts_with("warning[W0001]"), "{shown}");
    assert!(print::script(&script).contains("x = 2 + 1;"));
}

#[test]
fn macros_that_double_end() {
    let mut text = String::from("@define m0 %( 1 + %)\n");
    for n in 1..40 {
        text.push_str(&format!("@define m{n} %( @m{} @m{} %)\n", n - 1, n - 1));
    }
    let (_, shown) = try_parse(&format!("{text} probe begin {{ x = @m39 1 }}"));
    assert!(shown.starts_with("error[E0015]"), "{shown}");
}

#[test]
fn library_macros() {
    let mut sources = SourceMap::new();
    let mut macros = Macros::default();
    let mut collect = |sources: &mut SourceMap, text: &str| {
        let file = sources.add("lib.stpm", text.as_bytes().to_vec(), Origin::Tapset);
        collect_macros(sources, file, &environment(), &mut macros).len()
    };
    assert_eq!(collect(&mut sources, "# comment\n@define a(x) %( @b + @x %)\n@define b %( 2 %)"), 0);
    assert_eq!(collect(&mut sources, "%( kernel_v > \"7\" %? @define c %( 7 %) %: @define c %( 6 %) %)"), 0);
    assert_eq!(collect(&mut sources, "@define b %( 3 %)"), 1);
    assert_eq!(collect(&mut sources, "@define d %( 3 %) global x"), 1);
    assert_eq!(macros.len(), 3);
    let file = sources.add("a.stp", b"@define b %( 5 %) probe begin { x = @a(@c) }".to_vec(), Origin::User);
    let (script, diagnostics) = parse(&mut sources, file, &environment(), &macros);
    assert_eq!(diagnostics, []);
    // The script's own macro shadows the library's.
    assert!(print::script(&script).contains("x = 5 + 6;"));
}

#[test]
fn probe_points_alone() {
    let mut sources = SourceMap::new();
    let mut parse = |text: &str| {
        let file = sources.add("-l", text.as_bytes().to_vec(), Origin::User);
        parse_probe_points(&mut sources, file)
    };
    let (points, problems) = parse("vfs.{read,write}, kernel.function(\"*@fs/*.c\").call ?");
    assert_eq!(
        points.iter().map(print::point).collect::<Vec<_>>(),
        ["vfs.read", "vfs.write", "kernel.function(\"*@fs/*.c\").call?"]
    );
    assert_eq!(problems, []);
    for wrong in ["", "vfs.", "vfs.read {", "a b", "probe begin", "kernel.function(x)", "\"x\"", "@x"] {
        let (points, problems) = parse(wrong);
        assert!(points.is_empty() && !problems.is_empty(), "{wrong}");
    }
}

#[test]
fn script_arguments_are_pasted() {
    assert_eq!(statements("x = $1 + $# . @1 @2"), ["x = 10 + 2 . \"10two words\";"]);
    assert_eq!(statements("$2"), ["two;", "words;"]);
    assert_eq!(try_parse("probe begin { print($1_000) }").1.matches("error[E0001]").count(), 1);
    let (script, _) = try_parse("probe begin { print($1, $#) } %( 1 == 2 %? global x = @2 %)");
    assert_eq!(script.arguments.into_iter().collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn arguments_hold_no_arguments() {
    let mut sources = SourceMap::new();
    let file = sources.add("a.stp", b"probe begin { x = $1 + @1 }".to_vec(), Origin::User);
    let environment = Environment { arguments: vec!["$2".into(), "5".into()], ..environment() };
    let (_, diagnostics) = parse(&mut sources, file, &environment, &Macros::default());
    assert_eq!(diagnostics.iter().map(|diagnostic| diagnostic.code.0).collect::<Vec<_>>(), ["E0004"]);
}

#[test]
fn unused_arguments_are_reported() {
    let used = |text: &str| {
        let (script, _) = try_parse(text);
        unused_arguments([&script], &environment()).iter().map(|warning| warning.message.clone()).collect::<Vec<_>>()
    };
    assert_eq!(used("probe begin { x = $1 . @2 }"), [""; 0]);
    // Arguments in a skipped branch are not used.
    assert_eq!(used("probe begin { x = $1 } %( 1 == 2 %? global a = @2 %)"), ["unused command line option $2/@2"]);
}

#[test]
fn spans_cover_what_was_written() {
    let text = "probe begin { foo = (a + b) * c->d }";
    let assigned = expr("foo = (a + b) * c->d");
    let at = |span: Span| &text[span.start as usize..span.end as usize];
    assert_eq!(at(assigned.span), "foo = (a + b) * c->d");
    let ExprKind::Assign(_, target, value) = assigned.kind else { panic!() };
    assert_eq!((at(target.span), at(value.span)), ("foo", "(a + b) * c->d"));
    let ExprKind::Binary(_, left, right) = value.kind else { panic!() };
    assert_eq!((at(left.span), at(right.span)), ("a + b", "c->d"));
    assert_eq!(print::expr(&left), "a + b");
}
