// SPDX-License-Identifier: GPL-2.0-or-later

//! What people write: scripts, files of the library, and the file of options.

use spile_core::elaborate::{self, Options};
use spile_core::plan::{self, Limits, ModuleInfo};
use spile_core::probe::Resolver;
use spile_source::diagnostic::Severity;
use spile_source::{Origin, SourceMap};
use spile_syntax::{self as syntax, Environment, Macros};

const SCRIPTS: [&str; 5] = [
    "global a = 1, s = \"x\"\nprobe begin { a += 2; s .= sprintf(\"%d %s\", a, execname()); if (a > 3 && s != \"y\") print(s) else exit() }",
    "function f:long (x:long, t) { for (i = 0; i < x; i++) { if (i == 3) continue; try { x = x / i } catch (m) { t = m . t } } return strlen(t) }\nprobe timer.s(1) { printf(\"%5d %-3s|%c\\n\", f(4, \"ab\"), \"q\", 65) }",
    "probe begin(-1), end, timer.ms(10).randomize(3) { x = y++ ? --z : ~w; while (x--) { next } delete x; println(x, 1) }",
    "@define m(x) %( @x + 1 %)\nprobe never { a[1, \"k\"] <<< @m(3) << 3 >>> 2 ^ 7; foreach ([k, v] in a- limit 3) println(@count(a[k, v])); print(\"ab\" =~ \"(a|b)*c?\") }",
    "%( kernel_v >= \"2.6\" && CONFIG_SMP == \"y\" %? probe a = begin { v = 1 } %: probe a = end { v = 2 } %)\nprobe a, b ?, c.d(\"x\") ! { print(v) warn(\"w\") log(substr(\"abc\", 0, 1)) }",
];

pub fn seeds() -> Vec<Vec<u8>> {
    SCRIPTS.iter().map(|text| text.as_bytes().to_vec()).collect()
}

fn environment() -> Environment {
    Environment { kernel_release: "6.1.0".into(), ..Environment::default() }
}

/// All passes up to the C text.
pub fn script(bytes: &[u8]) {
    compile(bytes);
}

/// The same; true if the script is accepted.
pub fn compile(bytes: &[u8]) -> bool {
    let mut sources = SourceMap::new();
    let file = sources.add("<input>", bytes.to_vec(), Origin::User);
    let (script, problems) = syntax::parse(&mut sources, file, &environment(), &Macros::default());
    let wrong = |problems: &[spile_source::diagnostic::Diagnostic]| {
        problems.iter().any(|problem| problem.severity == Severity::Error)
    };
    if wrong(&problems) {
        return false;
    }
    let options = Options { guru: true, display_globals: true, ..Options::default() };
    let mut resolver = Resolver::new(None, "6.1.0");
    let scripts = [script];
    let (program, problems) = elaborate::elaborate(&sources, &scripts, &options, &mut resolver);
    if wrong(&problems) {
        return false;
    }
    let info = ModuleInfo {
        module: "m".into(),
        title: "<input>".into(),
        kernel_release: "6.1.0".into(),
        guru: true,
        privilege: Default::default(),
        limits: Limits::default(),
        modinfo: Vec::new(),
        defines: Vec::new(),
    };
    let plan = plan::plan(&program, &sources, info).expect("what elaboration lets through can be planned");
    spile_core::emit::emit(&plan, spile_core::emit::Form::Whole).is_ok()
}

const LIBRARY: [&str; 3] = [
    "/* Library. */\nfunction task_name:string (t:long) %{ /* pure */ STAP_RETURN(\"x\"); %}\nprobe vm.fault = kernel.function(\"handle_mm_fault\") { address = $address }",
    "@define list(a, b) %( @a, @b %)\nprivate global g = 3\nfunction h(a) { return @list(a, g) }\nprobe __x.y = begin { name = \"x\" }, end",
    "%( systemtap_v >= \"4.0\" %? function f(a:string) { return a . \"}\" } %)\nprobe a.b = c.d { } # }\n// probe e = f { }",
];

pub fn tapset_seeds() -> Vec<Vec<u8>> {
    LIBRARY.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// What is found out about a file before it is needed, and the reading of it.
pub fn tapset(bytes: &[u8]) {
    let _ = syntax::outline::outline(bytes);
    let mut sources = SourceMap::new();
    let file = sources.add("library.stp", bytes.to_vec(), Origin::Tapset);
    let _ = syntax::parse(&mut sources, file, &environment(), &Macros::default());
}

pub fn rc_seeds() -> Vec<Vec<u8>> {
    [&b"-v -D 'MAXACTION=100' \"$HOME/x\" ~/y # more"[..], b"-I ${HOME}\\ a --vp 0000"].map(<[u8]>::to_vec).to_vec()
}

/// Lines of the file `rc`.
pub fn rc(bytes: &[u8]) {
    for line in String::from_utf8_lossy(bytes).lines() {
        let _ = spile::cli::rc::split(line, &|name| format!("<{name}>"));
    }
}
