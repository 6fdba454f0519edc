// SPDX-License-Identifier: GPL-2.0-or-later

//! Messages to users: each snapshot shows a script and its messages.

use super::*;

/// Checks the messages for scripts, each under its own name.
fn check(group: &str, cases: &[(&str, &str)]) {
    for (name, script) in cases {
        let (_, shown) = try_parse(script);
        let name = format!("{group}_{name}");
        insta::with_settings!({ omit_expression => true, snapshot_path => "../snapshots", prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(name, format!("{script}\n\n{shown}"));
        });
    }
}

#[test]
fn words() {
    check(
        "words",
        &[
            ("string", "probe begin { print(\"abc) }"),
            ("octal", "probe begin { x = 089 }"),
            ("unit", "probe timer.s(5ms) {}"),
            ("range", "probe begin { x = 18446744073709551616 }"),
            ("comment", "probe begin {} /* to do"),
            ("embedded", "probe begin {} %{ int x;"),
            ("embedded_end", "probe begin { x = 1 %} }"),
            ("dollars", "probe begin { print($x$$$) }"),
            ("quote", "probe begin { print('x') }"),
            ("foreign", "probe begin { größe = 1 }"),
        ],
    );
}

#[test]
fn arguments() {
    check(
        "arguments",
        &[
            ("range", "probe begin { print($3) }"),
            ("quoted_range", "probe begin { print(@9) }"),
            ("inside", "probe begin { print($2 +) }"),
        ],
    );
}

#[test]
fn macros() {
    check(
        "macros",
        &[
            ("unknown", "probe begin { print(@cout(x)) }"),
            ("unknown_far", "probe begin { print(@zzzzzz) }"),
            ("count", "@define m(a, b) %( @a + @b %)\nprobe begin { x = @m(1) }"),
            ("no_parentheses", "@define m(a) %( @a %)\nprobe begin { x = @m }"),
            ("unclosed_call", "@define m(a) %( @a %)\nprobe begin { x = @m(1 }"),
            ("recursion", "@define a %( @b %)\n@define b %( 1 + @a %)\nprobe begin { x = @a }"),
            ("twice", "@define a %( 1 %)\n@define a %( 2 %)\n"),
            ("operator", "@define cast(x) %( 1 %)\nprobe begin { x = @cast(1) }"),
            ("no_name", "@define %( 1 %)"),
            ("no_body", "@define m 1"),
            ("unclosed", "@define m %( 1"),
            ("nested", "@define m %( @define n %( 1 %) %)"),
            ("parameter", "@define m(a, a) %( 1 %)\n@define n(1) %( 1 %)"),
            (
                "inside",
                "@define plus(x) %( 1 + @x * %)\n@define twice(x) %( @plus(@x) %)\nprobe begin {\n  y = @twice(2)\n}",
            ),
        ],
    );
}

#[test]
fn conditionals() {
    check(
        "conditionals",
        &[
            ("remainder", "probe begin { x = 7\n  y = x %(3 + 1)\n}"),
            ("left", "%( kernel == \"6\" %? global a %)"),
            ("operator", "%( arch = \"x86_64\" %? global a %)"),
            ("equality", "%( arch < \"x\" %? global a %)"),
            ("right", "%( kernel_v > 6 %? global a %)"),
            ("right_number", "%( $# > \"1\" %? global a %)"),
            ("pattern", "%( kernel_v > \"6.*\" %? global a %)"),
            ("end", "%( kernel_v > \"6.1\" ? global a %)"),
            ("unclosed", "%( 1 == 1 %? global a"),
            ("unclosed_skipped", "%( 1 == 2 %? global a"),
            ("stray", "global a %) global b"),
            ("stray_else", "global a %: global b"),
        ],
    );
}

#[test]
fn items() {
    check(
        "items",
        &[
            ("statement", "x = 1\nprobe begin {}"),
            ("brace", "probe begin { if (1) { x = 1 }\n\nprobe end { exit() }"),
            ("brace_end", "probe begin {\n  foreach (x in y) {\n"),
            ("extra_brace", "probe begin { } }\nprobe end { }"),
            ("no_handler", "probe begin\nprobe end { exit() }"),
            ("no_handler_end", "probe begin"),
            ("no_points", "probe { exit() }"),
            ("comma", "probe begin, { exit() }"),
            ("dot", "probe kernel. { exit() }"),
            ("argument", "probe kernel.function(vfs_read) { }"),
            ("empty_alternative", "probe vfs.read{,.return} { }"),
            ("alias_mark", "probe my.alias? = begin { }"),
            ("alias_alternatives", "probe my.{a,b} = begin { }"),
            ("second_handler", "probe begin { }, { }"),
            ("second_epilogue", "probe a += begin { }, { }"),
            ("global_type", "global x:long"),
            ("global_wrap", "global a[2]%"),
            ("global_size", "global a[0]"),
            ("global_array_initial", "global a[3] = 4"),
            ("global_expression", "global a = 1 + 2"),
            ("global_keyword", "global limit"),
            ("function_parentheses", "function f { return 1 }"),
            ("function_type", "function f(a:int) { return a }"),
            (
                "bomb",
                "probe a.{a,b,c,d,e,f,g,h,i,j}.{a,b,c,d,e,f,g,h,i,j}.{a,b,c,d,e,f,g,h,i,j}.{a,b,c,d,e,f,g,h,i,j}.{a,b,c,d,e,f,g,h,i,j} {}",
            ),
        ],
    );
}

#[test]
fn statements() {
    check(
        "statements",
        &[
            ("else", "probe begin { if (a) b; c; else d }"),
            ("no_condition", "probe begin { if a { b } }"),
            ("while", "probe begin { while () { b } }"),
            ("for", "probe begin { for (i = 0, i < 3, i++) { } }"),
            ("foreach", "probe begin { foreach (x) { } }"),
            ("foreach_two_keys", "probe begin { foreach (a, b in c) { } }"),
            ("sort_twice", "probe begin { foreach (a+ in c-) { } }"),
            ("sort_operator", "probe begin { foreach (a in c @hist_log-) { } }"),
            ("sort_operator_mark", "probe begin { foreach (a in c @count) { } }"),
            ("delete", "probe begin { delete 5 }"),
            ("try", "probe begin { try { a } }"),
            ("any_index", "probe begin { x = a[1, *] }"),
            ("keyword", "probe begin { next = 1 }"),
        ],
    );
}

#[test]
fn expressions() {
    check(
        "expressions",
        &[
            ("operand", "probe begin { a = 1 + }"),
            ("operator", "probe begin { print(a b) }"),
            ("paren", "probe begin { print(a\n}"),
            ("assign", "probe begin { 1 = a }"),
            ("assign_sum", "probe begin { a + b = 3 }"),
            ("step", "probe begin { print(\"a\")\n  ++x }"),
            ("ternary", "probe begin { a ? b }"),
            ("pattern", "probe begin { if (a =~ b) c }"),
            ("pattern_twice", "probe begin { if (a =~ \"b\" =~ \"c\") d }"),
            ("list", "probe begin { [a, b] = c }"),
            ("in", "probe begin { if (a in 5) b }"),
            ("in_operator", "probe begin { if (a in @count(b)) c }"),
            ("dereference", "probe begin { print(*$p) }"),
            ("member", "probe begin { print($p->) }"),
            ("after_pretty", "probe begin { print($p$->x) }"),
            ("print", "probe begin { print = 1 }"),
            ("print_none", "probe begin { print() }"),
            ("printf_value", "probe begin { printf(x) }"),
            ("printf_none", "probe begin { printf() }"),
            ("printd", "probe begin { printd(\",\", 1) }"),
            ("printd_delimiter", "probe begin { printd(x, 1, 2) }"),
            ("print_char", "probe begin { print_char(1, 2) }"),
            ("cast", "probe begin { @cast($p, task_struct) }"),
            ("cast_none", "probe begin { @cast() }"),
            ("defined", "probe begin { @defined($a, $b) }"),
            ("hist", "probe begin { print(@hist_linear(x, 1, 2, y)) }"),
            ("extract", "probe begin { print(@count x) }"),
            ("probewrite", "probe begin { print(@probewrite(1)) }"),
            ("several", "probe begin { a = ; }\nprobe end { b = 2 3 4 + ) }\nfunction f( { }\nglobal 5"),
        ],
    );
}

#[test]
fn deep() {
    let nested = |open: &str, close: &str| format!("probe begin {{ {}x{} }}", open.repeat(301), close.repeat(301));
    for script in [
        nested("!", ""),
        nested("a = ", ""),
        nested("a ? b : ", ""),
        nested("", " + 1"),
        nested("f(", ")"),
        nested("if (a) ", ""),
        nested("{ ", " }"),
        nested("", "->m"),
        nested("", "[1]"),
    ] {
        let (_, shown) = try_parse(&script);
        assert!(shown.starts_with("error[E0034]: statements and expressions are nested too deeply"), "{shown}");
    }
    // Parentheses are not in the tree.
    assert_eq!(try_parse(&nested("(", ")")).1, "");
}
