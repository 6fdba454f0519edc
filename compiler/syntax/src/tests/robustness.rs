// SPDX-License-Identifier: GPL-2.0-or-later

//! Any input is accepted without panic or hang, and the printed text parses again.

use super::*;
use crate::print;

/// Xorshift: the same scripts in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize
    }

    fn below(&mut self, limit: usize) -> usize {
        self.next() % limit.max(1)
    }
}

/// Scripts to mutate: together they contain every construct of the language.
const SEEDS: &[&str] = &[
    "#!/usr/bin/stap\nglobal a, b%[10], c = -1\nprobe begin { a[1, \"x\"] = c++ ; foreach ([k, l-] in a limit 3) printf(\"%d\\n\", k) }",
    "@define m(x, y) %( @x + @y * %( $# > 1 %? $1 %: 0 %) %)\nprobe timer.s(1), end? if (on) { print(@m(@m(1, 2), @count(s))) }",
    "probe a.b = kernel.{function(\"f*\"),trace(\"t\")!}.return { x = $p->f[1]$$ . @entry($q) } , { delete a[*, 1] }",
    "private function f:string(a:long, b):3 { try { return b ? sprintf(\"%s\", b) : \"\" } catch (e) { next } return; }",
    "%{ int x; %} function g(p) %{ STAP_RETURN(0); %} probe never { while (1) { if (!x) break else continue } s <<< %{ 1 %} }",
    "%( kernel_v >= \"5.0\" && arch == \"x*\" || CONFIG_SMP == \"y\" %? probe begin { for (;;) { } } %: %( 1 == 2 %? x %) %)",
    "probe process(\"/bin/ls\").function(@1).call { if ([1, *] in a && x !~ \"a|b\" \"c\") @cast(&$x, \"t\", \"m\")->y <<= 0x1f -~1 }",
];

/// Fragments that mutations insert.
const PIECES: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "%(",
    "%?",
    "%:",
    "%)",
    "%{",
    "%}",
    "\"",
    "/*",
    "#",
    "$",
    "$1",
    "@1",
    "$#",
    "@",
    "@m",
    "@define",
    "->",
    "++",
    "--",
    "-",
    "+",
    "&",
    "=",
    ";",
    ",",
    ".",
    ":",
    "?",
    "!",
    "~",
    "<<<",
    "=~",
    "in",
    "if",
    "else",
    "for",
    "foreach",
    "while",
    "limit",
    "return",
    "delete",
    "probe",
    "global",
    "function",
    "private",
    "try",
    "catch",
    "string",
    "long",
    "0x",
    "08",
    "9",
    "18446744073709551615",
    "a",
    "$a",
    "$$b",
    "$c$",
    "\"s\"",
    "@count",
    "@hist_log(x)",
    "print(",
    "*",
    "\\",
    "\n",
    "\0",
    "\u{e4}",
    " ",
];

fn parse_bytes(bytes: Vec<u8>) {
    let mut sources = SourceMap::new();
    let file = sources.add("fuzz.stp", bytes, Origin::User);
    let (script, diagnostics) = parse(&mut sources, file, &environment(), &Macros::default());
    for diagnostic in diagnostics.iter().take(2) {
        render(&sources, diagnostic, false);
    }
    if diagnostics.is_empty() {
        let text = print::script(&script);
        let file = sources.add("again.stp", text.clone().into_bytes(), Origin::User);
        let (again, diagnostics) = parse(&mut sources, file, &environment(), &Macros::default());
        assert_eq!(diagnostics, [], "{text}");
        assert_eq!(print::script(&again), text);
    }
}

fn mutate(random: &mut Random, seed: &str) -> Vec<u8> {
    let mut bytes = seed.as_bytes().to_vec();
    for _ in 0..1 + random.below(4) {
        let at = random.below(bytes.len());
        match random.below(5) {
            0 => {
                let end = (at + random.below(8)).min(bytes.len());
                bytes.drain(at.min(end)..end);
            }
            1 => {
                let piece = PIECES[random.below(PIECES.len())];
                bytes.splice(at..at, piece.bytes());
            }
            2 => {
                let end = (at + 1 + random.below(30)).min(bytes.len());
                let copy = bytes[at.min(end)..end].to_vec();
                let to = random.below(bytes.len());
                bytes.splice(to..to, copy);
            }
            3 => bytes.truncate(at),
            _ => {
                let byte = random.next() as u8;
                if let Some(place) = bytes.get_mut(at) {
                    *place = byte;
                }
            }
        }
    }
    bytes
}

#[test]
fn mutated_scripts() {
    let mut random = Random(0x5eed_0001);
    for round in 0..7_000 {
        let seed = SEEDS[round % SEEDS.len()];
        parse_bytes(mutate(&mut random, seed));
    }
}

#[test]
fn random_pieces() {
    let mut random = Random(0x5eed_0002);
    for _ in 0..2_500 {
        let count = random.below(40);
        let mut text = String::from(["", "probe begin { ", "probe ", "function f(a) { "][random.below(4)]);
        for _ in 0..count {
            text.push_str(PIECES[random.below(PIECES.len())]);
            text.push_str([" ", "", "a"][random.below(3)]);
        }
        parse_bytes(text.into_bytes());
    }
}

#[test]
fn random_bytes() {
    let mut random = Random(0x5eed_0003);
    for _ in 0..1_000 {
        let length = random.below(200);
        parse_bytes((0..length).map(|_| random.next() as u8).collect());
    }
}

#[test]
fn every_prefix_of_a_script() {
    for seed in SEEDS {
        for length in 0..seed.len() {
            parse_bytes(seed.as_bytes()[..length].to_vec());
        }
    }
}

/// Macros that call each other or are nested in each other's arguments, many levels deep.
#[test]
fn deep_macros() {
    let mut chain = String::from("@define m0(x) %( @x %)\n");
    for n in 1..20_000 {
        chain.push_str(&format!("@define m{n}(x) %( @m{}(@x 1) %)\n", n - 1));
    }
    let define = "@define m(x) %( 1 + @x %)\n@define n %( 2 %)\n";
    let nested = |count: usize, close: &str| {
        format!("{define}probe begin {{ {}1{} }}", "@m(".repeat(count), close.repeat(count))
    };
    for script in [
        format!("{chain}probe begin {{ @m19999(1) }}"),
        format!("{chain}probe begin {{ @m200(1) }}"),
        nested(20_000, ")"),
        nested(20_000, ""),
        nested(100, ")"),
        format!("{define}probe begin {{ {} }}", "@n ".repeat(20_000)),
        format!("{define}probe begin {{ {} }}", "@m ".repeat(20_000)),
        format!("probe begin {{ {} }}", "$1 ".repeat(20_000)),
        "%( x ".repeat(20_000),
        "probe begin { delete a[*] x = a[*] } ".repeat(5_000),
        format!("probe begin {{ {} {} }}", "x = a[*] ".repeat(20_000), "delete a[*] ".repeat(20_000)),
    ] {
        parse_bytes(script.into_bytes());
    }
}

/// The maximum nesting of a script, for all passes that walk a tree recursively.
#[test]
fn deepest_trees() {
    for (open, close) in [
        ("!", ""),
        ("a = ", ""),
        ("a ? b : ", ""),
        ("", " . 1"),
        ("f(", ")"),
        ("if (a) ", ""),
        ("{ ", " }"),
        ("", "->m"),
        ("", "[1]"),
    ] {
        let depth = usize::from(MAX_DEPTH) - 5;
        let script = format!("probe begin {{ {}x{} }}", open.repeat(depth), close.repeat(depth));
        let (tree, shown) = try_parse(&script);
        assert_eq!(shown, "", "{open}{close}");
        assert_eq!(tree.clone(), tree);
        assert!(format!("{tree:?}").len() > depth);
        parse_bytes(script.into_bytes());
    }
}

/// A chain of `else if` is not nesting, however long.
#[test]
fn long_chains() {
    for arms in [99, 100, 101, 102, 200, 201, 202, 5000] {
        let text: String = (0..arms).map(|number| format!("if (a == {number}) b = {number} else ")).collect();
        let (tree, shown) = try_parse(&format!("probe begin {{ {text} b = -1 }}"));
        assert_eq!(shown, "", "{arms}");
        assert!(format!("{tree:?}").matches("Number(").count() > 2 * arms, "{arms}");
    }
}

/// Inputs that could overflow a stack or take quadratic time.
#[test]
fn endless_repetitions() {
    for piece in [
        "(",
        "[",
        "{",
        "%(",
        "%( 1 == 1 %?",
        "%( 1 == 2 %?",
        "!",
        "- ",
        "a = ",
        "a ? ",
        "f(",
        "@count(",
        "if (a) ",
        "if (a) b else ",
        "while (a) ",
        "a[",
        "$p->x",
        "a.",
        "\"s\"",
        "a + ",
        "{a,",
        "probe a { ",
        "a, ",
        "@define m %( ",
        "/*",
        "%{",
        "}",
        ")",
        "$1",
        "probe begin {} ",
        "++",
        "x$ ",
    ] {
        for head in ["", "probe begin { ", "probe "] {
            parse_bytes(format!("{head}{}", piece.repeat(3_000)).into_bytes());
        }
    }
}
