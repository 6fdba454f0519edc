// SPDX-License-Identifier: GPL-2.0-or-later

//! Generates hostile scripts from a grammar: none needs guru mode, all are as expensive, deep, wild and large as the
//! language allows.

use super::points;
use super::run::Disturbance;
use super::script::{Function, Known, Probe, Script};
use crate::random::Random;

/// Declared in each script; unused ones are dropped by the compiler.
const DECLARATIONS: [&str; 13] = [
    "global n, m, text, last, freed",
    "global a[2000], by[500], big[100000]",
    "global wrap%[16], names",
    "global sums, per[300]",
    "function deep(x) { if (x > 0) { u = x * 3; v = deep(x - 1); w = u ^ v; return w + deep(x / 2) } return x }",
    "function down(x) { return x > 0 ? down(x - 1) + 1 : 0 }",
    "function endless(x) { return endless(x + 1) + 1 }",
    "function other(x) { return x > 0 ? even(x - 1) : 0 }",
    "function even(x) { return x > 0 ? other(x - 1) : 1 }",
    "function join(s, x) { r = s; for (i = 0; i < x; i++) r = r . s; return r }",
    "function texts(x) { if (x > 0) { s = sprintf(\"%d%s\", x, texts(x - 1)); t = s . s; return substr(t, 1, 400) } return \"end\" }",
    "function wide(x) { LOCALS return x }",
    // Fixes their types, independently of the other probes.
    "probe begin { n = m = freed = a[0] = big[0] = names[\"\", \"\"] = 0; text = last = by[\"\"] = wrap[0] = \"\"; sums <<< 1; per[0] <<< 1 }",
];

/// Invalid addresses, addresses of other objects, and addresses next to them.
const ADDRESSES: [&str; 30] = [
    "0",
    "1",
    "8",
    "0xfff",
    "0x1000",
    "0x7fffffffe000",
    "0x7fffffffffff",
    "0x800000000000",
    "0x8000000000000000",
    "0xffff7fffffffffff",
    "0xffff800000000000",
    "0xffff888000000000",
    "0xffff8880000a0000",
    "0xffff8880fee00000",
    "0xffffc90000000000",
    "0xffffea0000000000",
    "0xfffffe0000000000",
    "0xfffffe0000000ffc",
    "0xffffffff80000000",
    "0xffffffff81000000",
    "0xffffffffa0000000",
    "0xffffffffc0000000",
    "0xffffffffc0400000",
    "0xffff8880000fff00",
    "0xffff8880fec00000",
    "0xffffffffff5fc000",
    "0xffffffffff600000",
    "0xfffffffffffffff8",
    "-1",
    "-4096",
];

const NUMBERS: [&str; 16] = [
    "0",
    "1",
    "-1",
    "2",
    "63",
    "64",
    "-64",
    "4095",
    "65536",
    "2147483647",
    "-2147483648",
    "4294967295",
    "9223372036854775807",
    "(-9223372036854775807 - 1)",
    "1000000007",
    "255",
];

const STRINGS: [&str; 12] = [
    "\"\"",
    "\"x\"",
    "\"%s%n%d\"",
    "\"a longer text with blanks, commas; and more of it than a word has\"",
    "\"\\0\\377\\n\"",
    "text",
    "execname()",
    "ppfunc()",
    "pn()",
    "sprint_backtrace()",
    "texts(20)",
    "join(\"abcdefgh\", 200)",
];

const PATTERNS: [&str; 8] =
    ["^a*b*c*$", "(a|aa)+$", "[^x]*x[^x]*x", "(.*)(.*)(.*)z", "^.{1,40}$", "[a-z]+[0-9]+", "((a?){8}){8}", "$"];

const STRUCTS: [(&str, &str); 6] = [
    ("task_struct", "parent->parent->mm->pgd"),
    ("task_struct", "comm"),
    ("file", "f_path->dentry->d_parent->d_inode->i_sb->s_id"),
    ("dentry", "d_name->name"),
    ("inode", "i_mapping->host->i_ino"),
    ("mm_struct", "owner->files->fdt->fd"),
];

/// Of probe points: over globals, where the probe is armed and disarmed while the others run, and over what only a hit has.
const CONDITIONS: [&str; 14] = [
    "n",
    "!n",
    "m & 1",
    "n > 3 && m < 1000",
    "text == \"x\"",
    "1 in big",
    "a[0] > 2",
    "@count(sums) > 5",
    "by[\"\"] =~ \"^a*b*$\"",
    "sprintf(\"%d%s\", n, text) != \"\"",
    "@uregister(7) && n",
    "@uregister(0) > m",
    "@uderef(8, n)",
    "@cast(freed, \"task_struct\", \"kernel\")->pid",
];

/// The script for a seed.
pub fn script(seed: u64, known: &Known) -> Script {
    let Known { functions, called } = known;
    let mut random = Random::new(seed ^ 0x6174_7461_636b);
    let random = &mut random;
    let count = random.pick([1, 1, 2, 2, 3, 4]);
    let mut probes: Vec<Probe> = (0..count)
        .map(|_| Probe {
            points: switched(points::points(random, called), random),
            statements: (0..1 + random.below(5)).map(|_| guarded(random, functions)).collect(),
        })
        .collect();
    // Memory of objects that are gone when it is read.
    if random.one_in(4) {
        let point = random.pick([
            "kprobe.function(\"kfree\")",
            "kernel.function(\"put_task_stack\") ?, kernel.function(\"release_task\") ?",
            "kernel.function(\"vfree\") ?, kernel.function(\"free_module\") ?",
        ]);
        probes.push(Probe { points: vec![point.to_string()], statements: vec!["freed = pointer_arg(1)".to_string()] });
    }
    // Depends only on the seed, so that the rest of a script does not change.
    if Disturbance::of(seed).changes_machine() {
        probes.push(Probe { points: points::changes(random), statements: vec!["n++".to_string()] });
    }
    if seed % 3 == 2 {
        let statements = (0..1 + random.below(4)).map(|_| in_user_space(random, functions)).collect();
        probes.push(Probe { points: switched(points::programs(random), random), statements });
    }
    let locals =
        format!("{}x = {};", (0..90).map(|at| format!("l{at} = x + {at}; ")).collect::<String>(), sum_of_locals());
    let declarations = DECLARATIONS.iter().map(|text| text.replace("LOCALS", &locals)).collect();
    Script { seed, options: options(random), declarations, probes }
}

/// The points, in one of four probes with a condition each.
fn switched(points: Vec<String>, random: &mut Random) -> Vec<String> {
    if !random.one_in(4) {
        return points;
    }
    points.into_iter().map(|point| format!("{point} if ({})", random.pick(CONDITIONS))).collect()
}

/// Keeps all of them in use.
fn sum_of_locals() -> String {
    (0..90).map(|at| format!("l{at}")).collect::<Vec<_>>().join(" + ")
}

/// Limits that a user may set without guru mode. Errors and skips seldom end the session. Not STP_NO_OVERLOAD, which
/// disables the guard.
fn options(random: &mut Random) -> Vec<String> {
    let mut options = vec!["-DMAXERRORS=1000000000".to_string(), "-DMAXSKIPPED=1000000000".to_string()];
    let mut sometimes = |chance: usize, option: String| {
        if random.one_in(chance) {
            options.push(option);
        }
    };
    sometimes(4, "-DMAXACTION=10000000".to_string());
    sometimes(5, "-DMAXSTRINGLEN=4096".to_string());
    sometimes(8, "-DMAXSTRINGLEN=16".to_string());
    sometimes(12, "-DMAXSTRINGLEN=60000".to_string());
    sometimes(5, "-DMAXMAPENTRIES=7".to_string());
    sometimes(6, "-DMAXNESTING=40".to_string());
    sometimes(6, "-DMAXTRYLOCK=1".to_string());
    sometimes(8, "-DSTP_OVERLOAD_THRESHOLD=100000000".to_string());
    options
}

fn guarded(random: &mut Random, functions: &[Function]) -> String {
    let statement = statement(random, functions);
    if random.one_in(3) {
        statement
    } else {
        format!("try {{ {statement} }} catch (problem) {{ m++; last = problem }}")
    }
}

fn statement(random: &mut Random, functions: &[Function]) -> String {
    match random.below(26) {
        0 => format!("n += {}", number(random, functions, 4)),
        1 => format!("a[{}]++", number(random, functions, 2)),
        2 => format!("big[tid() + {}] = {}", number(random, functions, 1), number(random, functions, 2)),
        3 => format!(
            "sums <<< {}; per[{}] <<< {}",
            number(random, functions, 2),
            number(random, functions, 1),
            number(random, functions, 2)
        ),
        4 => format!(
            "foreach (k{} in a limit {}) {{ delete big[k]; n += k }}",
            random.pick(["", "+", "-"]),
            random.pick([1, 50, 100_000])
        ),
        5 => "foreach (k in a) foreach (l- in by) { n += k ^ strlen(l); big[n]++ }".to_string(),
        6 => format!("by[{}] = {}", string(random, functions, 2), string(random, functions, 2)),
        7 => "foreach (k in per- limit 10) n += @count(per[k]) + @avg(per[k]) + @max(per[k])".to_string(),
        8 => format!(
            "print({})",
            random.pick([
                "@hist_log(sums)",
                "@hist_linear(sums, -1000000, 1000000, 20000)",
                "@hist_linear(sums, 0, 100, 1)"
            ])
        ),
        9 => format!("printf(\"{}\", {})", directive(random), number(random, functions, 2)),
        10 => format!(
            "printf(\"%{}{}s|%M\", {}, {})",
            random.pick(["", "-", "."]),
            random.pick(["", "1", "255", "4000"]),
            string(random, functions, 2),
            address(random)
        ),
        11 => format!("while ({}) n++", random.pick(["1", "n < 100000", "a[n % 100] >= 0"])),
        12 => format!(
            "n += {}({})",
            random.pick(["deep", "down", "endless", "even", "wide"]),
            random.pick(["3", "17", "60", "100000"])
        ),
        13 => format!("text = {}; if (text =~ \"{}\") n++", string(random, functions, 3), random.pick(PATTERNS)),
        14 => random
            .pick(["print_backtrace()", "print_ubacktrace()", "print_stack(backtrace())", "print_regs()"])
            .to_string(),
        15 => format!(
            "println({})",
            random.pick([
                "$$vars",
                "$$parms$$",
                "$$return$",
                "$$locals",
                "pp()",
                "callers(40)",
                "cmdline_str()",
                "env_var(\"PATH\")"
            ])
        ),
        16 => {
            let (name, path) = random.pick(STRUCTS);
            format!(
                "printf(\"%p %s\", @cast({}, \"{name}\", \"kernel\")->{path}, @cast({}, \"{name}\", \"kernel\"){})",
                address(random),
                address(random),
                random.pick(["$", "$$"])
            )
        }
        17 => format!("wrap[{}] = {}", number(random, functions, 1), string(random, functions, 1)),
        18 => format!("delete {}", random.pick(["a", "big", "per", "sums", "by", "wrap", "text", "a[n]"])),
        19 => format!(
            "names[{}, {}] = {}",
            string(random, functions, 1),
            string(random, functions, 1),
            number(random, functions, 1)
        ),
        20 => "for (i = 0; i < 3000; i++) { a[i * n] = i; delete a[i] }".to_string(),
        21 => "foreach ([x-, y] in names) { printf(\"%s %s\", x, y); delete by[x] }".to_string(),
        22 => format!("if ({} in big) next; text .= {}", number(random, functions, 1), string(random, functions, 1)),
        23 => nested(random),
        24 => format!(
            "printf(\"%*d|%-*.*s|%.*x\", {}, n, {}, {}, {}, {}, m)",
            random.pick(NUMBERS),
            random.pick(NUMBERS),
            random.pick(NUMBERS),
            string(random, functions, 1),
            random.pick(NUMBERS)
        ),
        _ => call(random, functions, 2).unwrap_or_else(|| "n--".to_string()),
    }
}

/// Statements that read the memory and the stack of the process.
fn in_user_space(random: &mut Random, functions: &[Function]) -> String {
    const PLACES: [&str; 8] = [
        "register(\"rsp\")",
        "register(\"rdi\")",
        "uaddr()",
        "user_long(register(\"rsp\"))",
        "user_long(user_long(register(\"rsp\") + n % 4096))",
        "(register(\"rsp\") + 0x7ffff000)",
        "(0 - n * 8)",
        "0x7fffffffeff8",
    ];
    let place = random.pick(PLACES);
    let statement = match random.below(9) {
        0 => "by[sprint_ubacktrace()] = text".to_string(),
        1 => "print_ubacktrace()".to_string(),
        2 => "text = ubacktrace(); n += strlen(text)".to_string(),
        3 => format!("println(user_string_n({place}, {}))", random.pick(NUMBERS)),
        4 => format!("n += user_long({place}); text = user_string_quoted({place})"),
        5 => format!("println(@cast({place}, \"task_struct\", \"kernel\")->parent->comm, $$vars)"),
        6 => "println($$parms$$, $$locals$, $$return)".to_string(),
        7 => format!("printf(\"%100M %s\", {place}, usymname({place}))"),
        _ => statement(random, functions),
    };
    format!("try {{ {statement} }} catch (problem) {{ m++; last = problem }}")
}

/// An expression that is hundreds of levels deep.
fn nested(random: &mut Random) -> String {
    let levels = random.pick([20, 100, 400]);
    match random.below(3) {
        0 => format!("n = {}m{}", "(1 + ".repeat(levels), ")".repeat(levels)),
        1 => format!("n = {}m", "-~".repeat(levels)),
        _ => format!("n += {}strlen(text){}", "(m > 3 ? n : ".repeat(levels / 4), ")".repeat(levels / 4)),
    }
}

fn directive(random: &mut Random) -> String {
    let flags = random.pick(["", "-", "0", "+", "#", " ", "-+#0"]);
    let width = random.pick(["", "1", "20", "255", "4000", "8192"]);
    let precision = random.pick(["", ".0", ".5", ".255", ".4000", ".8192"]);
    format!("%{flags}{width}{precision}{}", random.pick(["d", "x", "o", "u", "p", "c", "b", "m", "M", "X", "i"]))
}

fn address(random: &mut Random) -> String {
    match random.below(7) {
        0 => format!("task_current() + {}", random.pick(["0", "8", "9000", "-8"])),
        1 => random
            .pick([
                "pointer_arg(1)",
                "register(\"rsp\")",
                "register(\"rip\")",
                "register(\"rdi\")",
                "stack(0)",
                "addr()",
                "uaddr()",
            ])
            .to_string(),
        2 => format!("({} + {})", random.pick(ADDRESSES), random.pick(["1", "4095", "n", "tid() * 4096"])),
        3 => random.pick(["freed", "(freed + 8)", "(freed + 4090)", "kernel_long(freed)"]).to_string(),
        _ => random.pick(ADDRESSES).to_string(),
    }
}

fn number(random: &mut Random, functions: &[Function], depth: u32) -> String {
    if depth == 0 {
        return random.pick(NUMBERS).to_string();
    }
    match random.below(12) {
        0 | 1 => random.pick(NUMBERS).to_string(),
        2 => random
            .pick([
                "n",
                "m",
                "tid()",
                "cpu()",
                "pid()",
                "gettimeofday_ns()",
                "get_cycles()",
                "randint(1000)",
                "uid()",
                "stack_unused()",
            ])
            .to_string(),
        3..=5 => {
            let operator = random.pick(["+", "-", "*", "/", "%", "<<", ">>", ">>>", "&", "|", "^", "<", "==", "&&"]);
            format!("({} {operator} {})", number(random, functions, depth - 1), number(random, functions, depth - 1))
        }
        6 => format!("kernel_{}({})", random.pick(["char", "short", "int", "long", "pointer"]), address(random)),
        7 => format!(
            "user_{}({})",
            random.pick(["char", "int8", "uint16", "int", "long", "int64_error"]),
            address(random)
        ),
        8 => format!("strlen({})", string(random, functions, depth - 1)),
        9 => format!("a[{}]", number(random, functions, depth - 1)),
        10 => format!(
            "strtol({}, {})",
            string(random, functions, depth - 1),
            random.pick(["0", "10", "16", "-1", "36", "100"])
        ),
        _ => result(random, functions, "long", depth).unwrap_or_else(|| "-n".to_string()),
    }
}

fn string(random: &mut Random, functions: &[Function], depth: u32) -> String {
    if depth == 0 {
        return random.pick(STRINGS).to_string();
    }
    match random.below(9) {
        0 | 1 => random.pick(STRINGS).to_string(),
        2 => format!("({} . {})", string(random, functions, depth - 1), string(random, functions, depth - 1)),
        3 => format!(
            "substr({}, {}, {})",
            string(random, functions, depth - 1),
            random.pick(NUMBERS),
            random.pick(NUMBERS)
        ),
        4 => format!("sprintf(\"{}\", {})", directive(random), number(random, functions, depth - 1)),
        5 => format!("kernel_string{}({})", random.pick(["", "_quoted"]), address(random)),
        6 => format!(
            "user_string_{}({}, {})",
            random.pick(["n", "n_quoted", "n_warn"]),
            address(random),
            random.pick(NUMBERS)
        ),
        7 => format!(
            "str_replace({}, {}, {})",
            string(random, functions, depth - 1),
            random.pick(STRINGS),
            random.pick(STRINGS)
        ),
        _ => result(random, functions, "string", depth).unwrap_or_else(|| "text".to_string()),
    }
}

/// A call of any library function.
fn call(random: &mut Random, functions: &[Function], depth: u32) -> Option<String> {
    let function = random.choose(functions)?.clone();
    Some(with_arguments(random, functions, &function, depth))
}

/// A call of a library function that returns `ty`.
fn result(random: &mut Random, functions: &[Function], ty: &str, depth: u32) -> Option<String> {
    let suiting: Vec<&Function> = functions.iter().filter(|function| function.returns == ty).collect();
    let function = (*random.choose(&suiting)?).clone();
    Some(with_arguments(random, functions, &function, depth))
}

fn with_arguments(random: &mut Random, functions: &[Function], function: &Function, depth: u32) -> String {
    let arguments: Vec<String> = function
        .parameters
        .iter()
        .map(|ty| match ty.as_str() {
            "string" => string(random, functions, depth - 1),
            _ if random.one_in(2) => address(random),
            _ => number(random, functions, depth - 1),
        })
        .collect();
    format!("{}({})", function.name, arguments.join(", "))
}
