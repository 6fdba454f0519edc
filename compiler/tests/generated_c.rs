// SPDX-License-Identifier: GPL-2.0-or-later

//! Scripts and the C generated for them, as `-p3` prints it.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that fails may say so in any way")]

use spile_abi::sites::UserCode;
use spile_core::elaborate::{self, Options};
use spile_core::emit::{Form, Units};
use spile_core::plan::{self, Limits, ModuleInfo, Plan};
use spile_core::probe::Resolver;
use spile_core::program::{Attachment, Fingerprint, Label, Mechanism, Place, TargetId, Value};
use spile_source::{Origin, SourceMap};
use spile_syntax::{self as syntax, Environment, Macros};

/// The C of a script, and its embedded C.
fn translated(text: &str) -> (String, Option<String>) {
    translated_as("sample.stp", &[], text)
}

/// The same of a file with this name, and with these entries of `--modinfo`.
fn translated_as(title: &str, modinfo: &[(&str, &str)], text: &str) -> (String, Option<String>) {
    let units = spile_core::emit::emit(&planned(title, modinfo, text), Form::Whole).unwrap();
    (units.script, units.embedded)
}

/// Whole, and with tables of many probes apart.
fn both_forms(text: &str) -> (Units, Units) {
    let plan = planned("sample.stp", &[], text);
    let emitted = |form| spile_core::emit::emit(&plan, form).unwrap();
    (emitted(Form::Whole), emitted(Form::Short))
}

fn planned(title: &str, modinfo: &[(&str, &str)], text: &str) -> Plan {
    let mut sources = SourceMap::new();
    let file = sources.add("sample.stp", text.as_bytes().to_vec(), Origin::User);
    let environment = Environment::default();
    let (script, problems) = syntax::parse(&mut sources, file, &environment, &Macros::default());
    assert_eq!(problems, []);
    let options = Options { guru: true, display_globals: true, ..Options::default() };
    let mut resolver = Resolver::new(None, "6.1.0");
    let scripts = [script];
    let (program, problems) = elaborate::elaborate(&sources, &scripts, &options, &mut resolver);
    assert_eq!(problems, []);
    let info = ModuleInfo {
        module: "sample".into(),
        title: title.into(),
        kernel_release: "6.1.0".into(),
        guru: true,
        privilege: Default::default(),
        limits: Limits::default(),
        modinfo: modinfo.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        defines: Vec::new(),
    };
    plan::plan(&program, &sources, info).unwrap()
}

/// The script and its C, without the tables at the end that hold no code and without the number of the ABI's
/// version, which says nothing about the translation.
fn both(text: &str) -> String {
    let (script, embedded) = translated(text);
    let code = script.split("static const struct spile_probe probes").next().unwrap_or_default();
    let version = format!("SPILE_SCRIPT_ABI {}\t", spile_abi::device::ABI_VERSION);
    assert!(code.contains(&version));
    let code = code.replace(&version, "SPILE_SCRIPT_ABI VERSION\t");
    let embedded = embedded.map(|embedded| format!("\n==== embedded C\n{embedded}")).unwrap_or_default();
    format!("{text}\n==== C\n{}{embedded}", code.trim_end())
}

#[test]
fn division_can_fail() {
    insta::assert_snapshot!(both("probe begin { x = 7 printf(\"%d\\n\", x / (x - 7)) }"));
}

/// A function that asks for the probed function costs a probe of a function no registers, whatever else calls it.
#[test]
fn names_of_probed_functions() {
    let registers = |text: &str| {
        let (script, _) = translated(text);
        let of_function = script.split(".point = ").find(|site| site.starts_with("\"kprobe.function")).unwrap();
        let named = of_function.lines().find(|line| line.contains(".registers = ")).map(str::trim);
        (script.contains("hit_function"), named.map(str::to_string))
    };
    let who = "function who:string () { return probefunc() } probe kprobe.function(\"f\") { println(who()) }";
    let (by_address, without) = registers(&format!("{who} probe timer.s(1) {{ println(who()) }}"));
    assert!(!by_address);
    assert_eq!(registers(&format!("{who} probe timer.profile {{ println(who()) }}")), (true, without.clone()));
    assert_ne!(registers(&format!("{who} probe kprobe.function(\"f\") {{ print_regs() }}")).1, None);
    assert!(without.is_none_or(|registers| registers.contains("0x0") || registers.contains("= 0,")), "none");
}

/// Globals read at a function's entry are locked there, and those that only its return handler uses are not.
#[test]
fn locks_of_entry_values() {
    let (script, _) = translated(
        "global a, b\nprobe kprobe.function(\"f\") { a[tid()] = 1; b[1] = 2 }\n\
         probe kprobe.function(\"g\").return { b[tid()] = @entry(a[tid()]) }",
    );
    let tables = script.split("static const struct spile_probe probes").next().unwrap_or_default();
    let lines: Vec<&str> = tables.lines().filter(|line| line.contains("locks_")).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    static const unsigned int locks_0[] = { 0 << 2 | SPILE_LOCK_WRITE };
    static const unsigned int locks_2[] = { 1 << 2 | SPILE_LOCK_ALL };
    static const unsigned int entry_locks_1[] = { 0 << 2 | SPILE_LOCK_READ };
    ");
}

#[test]
fn order_of_effects() {
    insta::assert_snapshot!(both("global g\nprobe timer.s(1) { y = g + g++ * (g = 3) print(y) }"));
}

/// A file's name can hold whatever a name can, and forge no line of modinfo(8)'s output.
#[test]
fn names_forge_no_line_of_the_module_s_information() {
    let (script, _) =
        translated_as("a\nsigner: root\x1b[2K.stp", &[("note", "b\nsigner: root")], "probe begin { println(1) }");
    let lines: Vec<&str> =
        script.lines().filter(|line| line.contains("signer: root") && line.contains("MODINFO")).collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    for line in lines {
        // The C's own escapes would be \n and \033 or the like, with one backslash.
        assert!(line.contains(r"\\nsigner: root") && !line.replace(r"\\", "").contains('\\'), "{line}");
    }
}

/// Scripts' text is in comments.
#[test]
fn nothing_of_a_script_leaves_its_comment() {
    let apart = regex::Regex::new(r#""(\\.|[^"\\])*"|/\*(?s:.*?)\*/"#).unwrap();
    for hostile in ["*/ evil() /*", "*??/", "\\", "/*/ ***/", "??/??/", "\u{202e}*/"] {
        // In a comment of the script, before and behind the statement, and at the end of the line.
        for script in [
            format!("probe never {{ print(1) // {hostile}\n print(2) # {hostile}\n print(3) }}"),
            format!("global g\nprobe never {{ s = \"{}\" g = s\nprint(g) }}", hostile.replace('\\', "\\\\")),
        ] {
            let text = both(&script);
            let code = text.split("==== C").nth(1).unwrap_or_default();
            // Where a string or a comment begins first, it is one.
            for comment in apart.find_iter(code).map(|found| found.as_str()).filter(|found| found.starts_with("/*")) {
                assert!(!comment.contains(['\n', '\u{202e}']) && !comment.contains("??"), "{comment}");
            }
            let left = apart.replace_all(code, " ");
            assert!(!["evil", "*/", "//", "\\"].iter().any(|part| left.contains(part)), "{left}");
        }
    }
}

#[test]
fn lines_stand_over_their_statements() {
    let text = both("global n\nprobe timer.s(1) {\n    x = 8\n    if (pid())\n        n = x / tid()  # why\n}");
    let at = |part: &str| text.rfind(part).unwrap_or_else(|| panic!("{part}: {text}"));
    assert!(at("/* sample.stp:3: x = 8 */") < at("l_x = 8;"), "{text}");
    assert!(at("/* sample.stp:4: if (pid()) */") < at("/* sample.stp:5: n = x / tid()  # why */"), "{text}");
    assert!(text.contains("c->location = 0;\t/* operator '/' at sample.stp:5:15 */"), "{text}");
}

#[test]
fn loops_are_charged() {
    insta::assert_snapshot!(both("probe never { for (i = 0; i < 3; i++) { if (i == 1) continue; print(i) } }"));
}

#[test]
fn strings_and_functions() {
    insta::assert_snapshot!(both(
        "function f:string (n:long) { return n > 0 ? f(n - 1) . \"x\" : \"\" }\nprobe end { s = f(3) s .= sprintf(\"%5s\", s) println(s) }"
    ));
}

#[test]
fn strings_are_made_where_they_are_returned() {
    insta::assert_snapshot!(both(
        "function f:string (s:string) { return s . s }\nfunction g:string (n:long) { try { return \"a\" . sprintf(\"%d\", 1 / n) } catch { } }\n\
         function h:string (n:long) { if (n) return (s = execname()) s = execname() return s . f(s) }\n\
         function k:string () { return f(\"k\") }\nprobe end { println(f(g(0)), h(1), k()) }"
    ));
}

#[test]
fn errors_are_caught() {
    insta::assert_snapshot!(both("probe begin { try { error(\"no\") } catch (m) { warn(m) } }"));
}

#[test]
fn embedded_c() {
    insta::assert_snapshot!(both(
        "function syslog(msg: string) %{\n  printk(\"%s\\n\", STAP_ARG_msg);\n%}\nprobe begin { syslog(\"a\" . execname()) }"
    ));
}

#[test]
fn patterns() {
    insta::assert_snapshot!(both(
        "probe begin { s = execname() if (s =~ \"^(a|b)c\" && s !~ \"d$\" && \"xc\" =~ \"^(a|b)c\") println(matched(1)) }"
    ));
}

#[test]
fn patterns_without_groups() {
    insta::assert_snapshot!(both("probe begin { println(execname() =~ \"^(a|b)c\") }"));
}

#[test]
fn handlers_that_do_the_same_are_one() {
    let text = both("probe timer.s(1), timer.s(2) { println(pp()) }\nprobe timer.s(3) { println(1) }");
    assert_eq!(text.matches("(struct spile_context *c SPILE_LOCAL)\n{").count(), 2, "{text}");
    assert!(text.contains("probe timer.s(1) (sample.stp:1:7), and 1 more"), "{text}");
}

#[test]
fn names_that_are_only_printed_are_left_to_the_loader() {
    let text = both(
        "function where:string (a:long) { return symname(a) }\nfunction both:string () { return sprintf(\"%s in %s\", symdata(1), modname(2)) }\n\
         probe timer.s(1) { printf(\"%-20s %s\\n\", where(7), both()) println(__stack_addresses(1, 3)) }",
    );
    assert!(
        !text.contains("spile_fn_sym") && !text.contains("spile_fn_modname") && !text.contains("spile_fn___stack"),
        "{text}"
    );
    assert_eq!(text.matches("\t\t\tto[").count(), 3, "{text}");
    assert!(text.contains("at = spile_put_stack(c, at, 0, 1, 3);"), "{text}");
    assert!(
        !text.contains("function_where") && !text.contains("function_both") && !text.contains("table_0"),
        "nobody calls them: {text}"
    );
}

#[test]
fn names_that_are_values_are_asked_in_the_handler() {
    for script in [
        "probe timer.s(1) { s = symname(7) println(s) }",
        "global g\nprobe timer.s(1) { g = sprintf(\"%s\", symname(7)) }",
        "function f:string (a:long) { if (a) return symname(a) return \"\" }\nprobe timer.s(1) { println(f(7)) }",
        "function f:string (a:long, b:long) { return symname(b) }\nprobe timer.s(1) { println(f(6, 7)) }",
        "function f:string (a:long) { return a ? symname(a) : \"\" }\nprobe timer.s(1) { println(f(7)) }",
    ] {
        let text = both(script);
        assert!(text.contains("spile_fn_symname(c, "), "{text}");
    }
}

/// Whether the global `n` of a script is loaded and stored without a lock, beside a second probe that writes it.
fn is_lone(body: &str) -> bool {
    let text = both(&format!(
        "global n\nfunction get() {{ return n }}\nfunction put(value) {{ n = value }}\n\
         function deep(left) {{ if (left > 0) deep(left - 1) n = left }}\nprobe timer.s(9) {{ n = 7 }}\nprobe timer.s(1) {{ {body} }}"
    ));
    assert_ne!(text.contains("_single("), text.contains("<< 2 | SPILE_LOCK_"), "{body}: {text}");
    text.contains("_single(")
}

#[test]
fn what_a_run_touches_once_takes_no_lock() {
    for body in [
        "if (n) exit()",
        "n = !pid()",
        "if (pid()) n = 1 else n = 0",
        "if (pid()) put(1) else if (tid()) put(2)",
        "println(pid() ? n : n - 1)",
        "while (pid()) println(1) put(0)",
        "try { n = 1 } catch { println(1) }",
    ] {
        assert!(is_lone(body), "{body}");
    }
}

/// Whether the array `a` of a script is counted on each CPU, beside a probe that adds to it. Its key is none that is known when
/// the handler begins: if it is not counted, it has one lock, or this
/// probe takes all stripes.
fn is_counted(rest: &str) -> bool {
    let text = both(&format!("global a{rest}\nprobe kprobe.function(\"f\") {{ a[tid(), pexecname()] += 2 }}"));
    assert_eq!(text.contains(".counted = 1"), text.contains("spile_map_count(c, "), "{rest}: {text}");
    let is_locked = text.contains("SPILE_LOCK_WRITE") || text.contains(".striped = 1");
    assert_ne!(text.contains(".counted = 1"), is_locked, "{rest}: {text}");
    text.contains(".counted = 1")
}

#[test]
fn arrays_that_are_added_to_are_counted() {
    for rest in [
        "",
        "[16384]",
        "%",
        "\nprobe end { foreach ([t, n] in a) println(a[t, n]) }",
        "\nprobe timer.s(1) { foreach ([t, n] in a-) println(a[t, n]) delete a }",
        "\nprobe procfs.read { $value = sprint(a[1, \"a\"]++) }",
        "\nprobe begin { a[1, \"a\"] = 7 }",
        "\nfunction add(n) { a[n, \"x\"]-- }\nprobe kprobe.function(\"g\") { add(1) }",
    ] {
        assert!(is_counted(rest), "{rest}");
    }
    for rest in [
        "[16385]",
        "\nprobe kprobe.function(\"g\") { println(a[1, \"a\"]) }",
        "\nprobe kprobe.function(\"g\") { if (a[1, \"a\"]++ > 9) exit() }",
        "\nprobe kprobe.function(\"g\") { a[1, \"a\"] *= 2 }",
        "\nprobe kprobe.function(\"g\") { delete a[1, \"a\"] }",
        "\nprobe kprobe.function(\"g\") if (a[1, \"a\"] > 5) { println(1) }",
        "\nprobe kprobe.function(\"g\").return { println(@entry(a[1, \"a\"])) }",
    ] {
        assert!(!is_counted(rest), "{rest}");
    }
}

/// A script with an array `a`, of which a probe sets an element.
fn beside_one_element(rest: &str) -> String {
    format!("global a{rest}\nprobe kprobe.function(\"f\") {{ a[tid()] = 3 }}")
}

/// Whether the array of such a script has a lock for each stripe.
fn is_striped(rest: &str) -> bool {
    let text = both(&beside_one_element(rest));
    let (hold, release) = match rest.starts_with('%') {
        true => ("spile_map_hold_wrapping(c, ", "spile_map_release_wrapping(&global_a, &c->held[0]);"),
        false => ("spile_map_hold_long(c, ", "spile_map_release(&c->held[0]);"),
    };
    assert_eq!(text.contains(".striped = 1"), text.contains(hold), "{rest}: {text}");
    assert_eq!(text.contains(".striped = 1"), text.contains(release), "{rest}: {text}");
    assert_ne!(text.contains(".striped = 1"), text.contains("SPILE_LOCK_WRITE"), "{rest}: {text}");
    text.contains(".striped = 1")
}

#[test]
fn arrays_of_which_handlers_use_a_few_elements_are_striped() {
    for rest in [
        "",
        "\nprobe kprobe.function(\"g\") { if (tid() in a) { println(a[tid()]) delete a[tid()] } }",
        "\nprobe kprobe.function(\"g\") { a[1] = a[1] + a[1]++ }",
        "\nprobe kprobe.function(\"g\") { for (i = 0; i < 3; i++) a[1] = i }",
        "\nprobe kprobe.function(\"g\") { a[pid() * 2 - 1]++ println(a[pid() * 2 - 1]) }",
        "\nprobe timer.s(1) { foreach (t in a) println(a[t]) delete a }",
        "\nprobe end { foreach (t in a) println(t) delete a[1] }",
        "\nprobe begin { a[1] = 2 a[2] = 3 }",
        "\nfunction get(t) { return a[t] }\nprobe kprobe.function(\"g\") { println(get(tid())) }",
        "%",
        "%[5]\nprobe kprobe.function(\"g\") { if (tid() in a) delete a[tid()] }",
        "\nprobe kprobe.function(\"g\") { a[1] = a[2] }",
        "\nprobe kprobe.function(\"g\") { if (a[1]) a[tid()] = 1 }",
        "\nprobe kprobe.function(\"g\") { a[1] = a[2] + a[3] + a[4] }",
    ] {
        assert!(is_striped(rest), "{rest}");
    }
    // These take all stripes.
    for rest in [
        "\nprobe kprobe.function(\"g\") { a[1] = a[2] + a[3] + a[4] + a[5] }",
        "\nprobe kprobe.function(\"g\") { a[a[1]] = 2 }",
        "\nprobe kprobe.function(\"g\") { delete a }",
        "\nprobe kprobe.function(\"g\") { if ([*] in a) exit() }",
        "\nprobe kprobe.function(\"g\") { foreach (t in a) println(t) }",
        "\nprobe kprobe.function(\"g\") { t = tid() a[t]++ t++ a[t]++ }",
        "\nprobe kprobe.function(\"g\") { a[gettimeofday_ns()] = 2 }",
        "\nprobe kprobe.function(\"g\") { a[100 / pid()] = 2 }",
    ] {
        assert!(is_striped(rest), "{rest}");
        assert!(both(&beside_one_element(rest)).contains("spile_map_hold_whole(c, &global_a)"), "{rest}");
    }
    for rest in [
        "\nprobe kprobe.function(\"g\") { delete a }\nprobe kprobe.function(\"h\") { delete a }",
        "\nprobe kprobe.function(\"g\") if (a[1] > 5) { println(1) }",
        "\nprobe kprobe.function(\"g\").return { println(@entry(a[1])) }",
    ] {
        assert!(!is_striped(rest), "{rest}");
    }
}

/// A key that is known only after the handler has done something: the stripe is taken there.
#[test]
fn stripes_are_taken_where_the_key_is_known() {
    let text = both(&beside_one_element("\nglobal k\nprobe kprobe.function(\"g\") { k = tid() a[k] = 1 }"));
    let late = text.find("c->late = 1;").expect("a stripe is taken late");
    assert!(text[late..].contains("spile_map_hold_long(c, &global_a"), "{text}");
    let stored = text.find("\tglobal_k = ").expect("the number is stored");
    assert!(stored < late, "{text}");
}

#[test]
fn stripes_of_several_elements_are_taken_together() {
    for (wrap, drops, release) in
        [("", 0, "spile_map_release(&c->held["), ("%", 1, "spile_map_release_wrapping(&global_a, &c->held[")]
    {
        let text = both(&format!("global a{wrap}\nprobe kprobe.function(\"f\") {{ a[1] = a[2] + a[3] }}"));
        assert!(text.contains(&format!("spile_map_hold_several(c, &global_a, &c->held[0], 3, {drops})")), "{text}");
        for element in 0..3 {
            let wanted = format!("spile_map_want(&global_a, &c->held[{element}], ");
            assert!(text.contains(&wanted) && text.contains(&format!("{release}{element}]);")), "{text}");
        }
    }
}

/// Another thread may rename a process between the moment when a run takes a stripe and the one when it uses the element.
#[test]
fn a_key_that_others_change_is_computed_once_or_the_array_locked() {
    let handler = |body: &str| both(&format!("global a\nprobe kprobe.function(\"f\") {{ {body} }}"));
    for once in ["a[execname()] = a[execname()] + 1", "a[uid()] = a[uid()] + 1", "n = execname() a[n] = a[\"x\"] + 1"] {
        assert!(handler(once).contains("spile_map_hold"), "{once}");
    }
    for again in [
        "a[execname()] = a[\"x\"] + 1",
        "a[uid()] = a[1] + 1",
        "f()\n}\nfunction f() { a[execname()] = a[execname()] + 1",
    ] {
        assert!(!handler(again).contains("spile_map_hold"), "{again}");
    }
}

#[test]
fn what_a_run_may_touch_again_takes_its_lock() {
    for body in [
        "if (!n) n = 1",
        "if (pid()) n = 1 n = 2",
        "if (pid()) { if (n) put(1) } else n = 0",
        "n ? exit() : put(1)",
        "while (pid()) println(n)",
        "for (i = 0; i < 3; i++) put(i)",
        "println(get() + get())",
        "deep(3)",
        "n = n + 1",
        "println(n++)",
        "try { n = 1 } catch { n = 2 }",
    ] {
        assert!(!is_lone(body), "{body}");
    }
}

#[test]
fn a_format_that_calls_itself_ends() {
    let text = both("function f:string () { return sprintf(\"x%s\", f()) }\nprobe timer.s(1) { println(f()) }");
    assert!(text.contains("function_f(c"), "{text}");
}

/// What a return probe's values change at the function's entry, conditions may read.
#[test]
fn entry_values_that_conditions_read() {
    let (script, _) = translated(
        "global n\nfunction bump() { n++; return n }\nprobe kprobe.function(\"f\").return { println(@entry(bump())) }\n\
         probe kprobe.function(\"g\") if (n > 3) { println(\"on\") }",
    );
    let (_, entry) = script.split_once("_entry(struct spile_context *c SPILE_LOCAL)\n{").expect("an entry handler");
    let (entry, _) = entry.split_once("\n}").expect("its end");
    assert!(entry.contains("SPILE_STALE_CONDITIONS"), "{entry}");
}

/// For each global that the script can be given another value of: whether commands may depend on it.
fn in_commands(text: &str) -> Vec<bool> {
    let (script, _) = translated(text);
    let table = script.lines().find(|line| line.starts_with("static const struct spile_setting settings[]"));
    let entries = table.expect("there are settings").split("{ &").skip(1);
    let flag = |entry: &str| entry.split([',', '}']).nth(2).map(|word| word.trim() == "1");
    entries.map(|entry| flag(entry).expect("three members")).collect()
}

#[test]
fn which_settings_commands_depend_on() {
    // Not on what decides whether there is one.
    assert_eq!(
        in_commands("global most = 3, n probe begin { if (n++ > most) system(\"echo \" . execname()) }"),
        [false, false]
    );
    // Directly, through another global of another probe, an array, a function, and by a condition.
    assert_eq!(
        in_commands("global who = \"x\", m = 1 probe begin { m = 2 } probe end { system(\"echo \" . who) }"),
        [true, false]
    );
    assert_eq!(
        in_commands(
            "global a = \"x\", b = \"y\", c probe begin { b = a } probe end { system(sprintf(\"%s\", b)) c = 1 }"
        ),
        [true, true, false]
    );
    assert_eq!(
        in_commands("global n = 1, all probe begin { all[1] = n } probe end { system(sprintf(\"%d\", all[1])) }"),
        [true]
    );
    assert_eq!(
        in_commands(
            "global n = 1, m = 2 function run(x) { system(x) } probe begin { run(sprintf(\"%d\", n)) } probe end { m = 3 }"
        ),
        [true, false]
    );
    assert_eq!(
        in_commands(
            "global n = 1, t = \"x\", m probe begin { if (n) t = \"y\" } probe end { system(t) } probe error { m++ }"
        ),
        [true, true, false]
    );
    // A local holds whatever the handler uses.
    assert_eq!(in_commands("global n = 1 probe begin { x = sprintf(\"%d\", n) system(x) }"), [true]);
    // C of the script may store anything; without commands it does not matter.
    assert_eq!(
        in_commands(
            "global n = 1 function f() %{ STAP_RETURN(); %} probe begin { f() printf(\"%d\", n) system(\"x\") }"
        ),
        [true]
    );
    assert_eq!(in_commands("global n = 1 probe begin { printf(\"%d\", n) }"), [false]);
}

/// A module has the parts of the runtime that its script names (runtime-c/optional.c).
#[test]
fn parts_of_the_runtime() {
    let parts = |text: &str| {
        let (script, _) = translated(text);
        let named =
            script.lines().filter_map(|line| Some(line.strip_prefix("SPILE_NEEDS(")?.strip_suffix(");")?.to_string()));
        named.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(parts("probe begin { println(1) exit() } probe end, error, never { println(2) }"), "");
    assert_eq!(parts("probe timer.s(1) { println(1) }"), "sites");
    assert_eq!(parts("global n = 1 probe begin { println(n) }"), "settings");
    assert_eq!(parts("global a probe begin { a[1] = 2 println(a[1]) }"), "arrays");
    assert_eq!(parts("probe begin { __print_stack(1) }"), "symbols");
    assert_eq!(
        parts("function f () %{ %} probe begin { f() }"),
        "sites symbols arrays followed programs user_files program_counters exceptions settings"
    );
}

/// Of many probes the C for builds without make has one element for each kind, and the rest is data.
#[test]
fn many_probes_are_data() {
    let probes = "probe kprobe.function(\"f\") { n++ }\n".repeat(100);
    let (whole, short) = both_forms(&format!("global n\n{probes}probe end {{ println(n) }}"));
    assert_eq!((whole.script.matches("\t.kind = ").count(), whole.tables), (101, None));
    let tables = short.tables.unwrap();
    assert!(short.script.matches("\t.kind = ").count() < 5 && short.script.contains("spile_probes[101]"));
    assert_eq!(tables.sites.len(), 101);
    assert_eq!((&*tables.sites[7].function, tables.sites[7].symbol.as_deref()), ("f", Some("f")));
    assert!(tables.meta.starts_with(b"SPILEMET"));
    let (whole, few) = both_forms("probe begin { println(1) }");
    assert_eq!(whole, few);
}

/// What reads memory ahead of a handler runs in the same place, and takes stack too.
#[test]
fn the_stack_of_a_probe_includes_what_reads_ahead() {
    let mut plan = planned("sample.stp", &[], "global n probe timer.s(1) { println(1) } probe timer.s(2) { n++ }");
    let other = plan.probes[1].handler.clone();
    let usage = format!("script.c:1:1:{other}\t500\tstatic\n");
    let need = |plan: &Plan| plan::stack::need(&plan.routines, 10, &usage).by_probe(plan)[0];
    let alone = need(&plan);
    plan.probes[0].paging = plan::Paging::Ahead(other);
    assert!(need(&plan) >= alone + 500);
}

/// Probes in programs too, which differ in a part of their union.
#[test]
fn many_probes_in_programs_are_data() {
    static UPROBE: Mechanism = Mechanism::new("SPILE_PROBE_UPROBE", Label::Function);
    let probes = "probe kprobe.function(\"f\") { n++ }\n".repeat(100);
    let mut plan = planned("sample.stp", &[], &format!("global n\n{probes}"));
    for (number, probe) in (0..).zip(&mut plan.probes) {
        probe.attachment = Attachment::new(&UPROBE)
            .with("uprobe.program", Value::Number(0))
            .with("uprobe.offset", Value::Unsigned(0x1000 + number))
            .with("uprobe.address", Value::Unsigned(0x2000 + number))
            .with("uprobe.counted", Value::Unsigned(if number < 50 { 0 } else { 0x3000 }));
    }
    let short = spile_core::emit::emit(&plan, Form::Short).unwrap();
    let tables = short.tables.unwrap();
    // The last one prints the global.
    assert_eq!((short.script.matches("\t.kind = ").count(), tables.sites.len()), (3, 101));
    let (first, last) = (&tables.sites[0], &tables.sites[99]);
    assert_eq!((first.shape, first.uprobe), (0, Some(UserCode { offset: 0x1000, address: 0x2000 })));
    assert_eq!((last.shape, last.uprobe), (1, Some(UserCode { offset: 0x1063, address: 0x2063 })));
}

#[test]
fn the_code_of_many_functions_is_data() {
    let probes = "probe kprobe.function(\"f\") { n++ }\n".repeat(100);
    let mut plan = planned("sample.stp", &[], &format!("global n\n{probes}"));
    let place = Place { target: TargetId(0), symbol: None, address: 0x10 };
    let bytes = vec![0xc3; 70];
    plan.fingerprints = vec![Fingerprint { place, function: "f".into(), bytes: bytes.clone(), patched: vec![(1, 5)] }];
    let emitted = |form| spile_core::emit::emit(&plan, form).unwrap();
    let (whole, short) = (emitted(Form::Whole), emitted(Form::Short));
    assert!(whole.script.contains("code_0[70]") && whole.script.contains("\t.fingerprints = fingerprints,"));
    assert!(!short.script.contains("code_0") && short.script.contains("\t.fingerprints = spile_fingerprints,"));
    assert!(short.script.contains("extern const struct spile_fingerprint spile_fingerprints[1];"));
    let code = &short.tables.unwrap().fingerprints[0];
    assert_eq!((&*code.function, code.address, &code.bytes, &*code.patched), ("f", 0x10, &bytes, &[(1, 5)][..]));
}
