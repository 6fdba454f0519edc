// SPDX-License-Identifier: GPL-2.0-or-later

//! A family of generated kernel modules, of the size that a site with out-of-tree file systems or drivers has: 20 modules that
//! depend on each other, 16,000 functions, 8,000 inlined copies of a function, structs of a shared header.
//!
//! `fam00` to `fam19` have functions `famNN_f0000` to `famNN_f0799`, in two source files each. Every second one has a
//! copy of `fam_mix`. `echo 1 >/sys/module/famNN/parameters/run` calls each function of famNN once; the parameter then
//! reads as the number of calls so far. It also calls `famNN_ways` twice, each time on another way to line 1000 of
//! famNN_main.c, and `famNN_kinds` once, with a struct of rarer kinds of members. fam01 to fam09 depend on fam00, fam10
//! to fam19 on fam01 and so on. `changed/fam19.ko` is another build of fam19: a struct has one more member (`fam_t03`),
//! a function comes before the others.
//!
//! They are built once and kept in `target/fixtures/family-KEY/`, as the other test modules are (`fixtures.rs`).

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::fixtures::{fingerprint, kernel_part};
use crate::place::Place;

/// Number of generated modules.
pub const MODULES: usize = 20;
/// Of each module.
pub const FUNCTIONS: usize = 800;
/// Files of each module that functions are in.
const FILES: usize = 2;
const STRUCTS: usize = 12;
/// Of each struct.
const MEMBERS: usize = 40;
/// The module that there is another build of.
const CHANGED: usize = MODULES - 1;

/// The arguments of `cargo xtask family`.
#[derive(clap::Args)]
pub struct Options {
    /// Kernel release or line, as for `test`
    #[arg(long, value_name = "RELEASE")]
    kernel: Option<String>,
}

/// The family, built.
pub struct Family {
    /// Where the modules are.
    pub directory: PathBuf,
}

/// The task: builds the family and prints its directory.
pub fn run(options: &Options) -> Result<ExitCode> {
    let family = Family::build(&crate::root(), &Place::find(options.kernel.as_deref())?)?;
    println!("{}", family.directory.display());
    Ok(ExitCode::SUCCESS)
}

/// Whether a test means one of the family by that name.
pub fn is_member(name: &str) -> bool {
    (0..MODULES).any(|module| module_name(module) == name)
}

fn module_name(module: usize) -> String {
    format!("fam{module:02}")
}

/// The module whose function each call of `run` of this one is counted by.
fn parent(module: usize) -> Option<usize> {
    match module {
        0 => None,
        1..10 => Some(0),
        _ => Some(module - 9),
    }
}

impl Family {
    /// The modules for the kernel of `place`; built if they are not there.
    pub fn build(root: &Path, place: &Place) -> Result<Family> {
        let sources = sources();
        let mut parts = vec![kernel_part(place)];
        parts.extend(sources.iter().flat_map(|(name, text)| [name, text]).map(|text| text.clone().into_bytes()));
        let family = Family { directory: root.join(format!("target/fixtures/family-{:016x}", fingerprint(&parts))) };
        // Last of all, so that a build that was stopped is begun again.
        let whole = family.directory.join("whole");
        if whole.is_file() {
            return Ok(family);
        }
        if family.directory.is_dir() {
            fs::remove_dir_all(&family.directory)
                .with_context(|| format!("emptying {}", family.directory.display()))?;
        }
        for (name, text) in sources {
            let file = family.directory.join(name);
            fs::create_dir_all(file.parent().unwrap_or(&family.directory))?;
            fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
        }
        make(&family.directory, place, &[])?;
        let symbols = format!("KBUILD_EXTRA_SYMBOLS={}", family.directory.join("Module.symvers").display());
        make(&family.changed_directory(), place, &[&symbols, "VARIANT=1"])?;
        for directory in [&family.directory, &family.changed_directory()] {
            remove_objects(directory)?;
        }
        fs::write(&whole, "")?;
        Ok(family)
    }

    /// The `.ko` files, by number.
    pub fn modules(&self) -> Vec<PathBuf> {
        (0..MODULES).map(|module| self.directory.join(format!("{}.ko", module_name(module)))).collect()
    }

    /// The other build of the last module.
    pub fn changed(&self) -> PathBuf {
        self.changed_directory().join(format!("{}.ko", module_name(CHANGED)))
    }

    fn changed_directory(&self) -> PathBuf {
        self.directory.join("changed")
    }
}

fn make(directory: &Path, place: &Place, arguments: &[&str]) -> Result<()> {
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let mut make = place.command("make", directory);
    make.arg(format!("-j{threads}")).arg("-C").arg(place.build_directory());
    make.arg(format!("M={}", directory.display())).args(arguments).arg("modules");
    let output = make.output().context("running make")?;
    if !output.status.success() {
        let messages = [output.stdout, output.stderr].concat();
        bail!("building the family of modules for {}:\n{}", place.kernel.release, String::from_utf8_lossy(&messages));
    }
    Ok(())
}

/// Files that only Kbuild needs have twice the size of the modules.
fn remove_objects(directory: &Path) -> Result<()> {
    for entry in fs::read_dir(directory)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if [".o", ".cmd", ".mod", ".mod.c"].iter().any(|suffix| name.ends_with(suffix)) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Names below the family's directory, with their contents.
fn sources() -> Vec<(String, String)> {
    let mut files = vec![("Kbuild".to_string(), kbuild(0..MODULES)), ("fam.h".to_string(), header())];
    for module in 0..MODULES {
        files.extend(module_sources(module));
    }
    files.push(("changed/Kbuild".to_string(), kbuild(CHANGED..MODULES)));
    files.push(("changed/fam.h".to_string(), header()));
    files.extend(module_sources(CHANGED).into_iter().map(|(name, text)| (format!("changed/{name}"), text)));
    files
}

fn kbuild(modules: std::ops::Range<usize>) -> String {
    let mut text =
        String::from("# SPDX-License-Identifier: GPL-2.0-or-later\nccflags-$(if $(VARIANT),y) += -DVARIANT\n");
    for module in modules {
        let name = module_name(module);
        let parts: String = (0..FILES).map(|file| format!(" {name}_{file}.o")).collect();
        let _ = write!(text, "obj-m += {name}.o\n{name}-y := {name}_main.o{parts}\n");
    }
    text
}

/// Large structs that point to each other, and the inline function.
fn header() -> String {
    let mut text = String::from(
        "/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef FAM_H
#define FAM_H

#include <linux/compiler.h>
#include <linux/list.h>
#include <linux/types.h>

enum fam_state { FAM_NEW, FAM_SENT, FAM_DONE = 7 };

struct fam_head {
	u64 id;
	u32 flags;
	enum fam_state state;
	struct list_head link;
	char name[16];
};

typedef char fam_char;
typedef s8 fam_level;

struct fam_kinds {
	const char tag[8];
	const fam_char mode;
	char count;
	u8 depth;
	fam_level level;
	unsigned int low : 3, high : 7;
	int below : 4;
	union {
		u32 whole;
		struct {
			u16 first, second;
		};
	};
	struct fam_pair {
		const char *name;
		long (*call)(long calls);
	} pairs[2];
	struct list_head list;
	int rest[];
};

",
    );
    for kind in 0..STRUCTS {
        let _ = writeln!(text, "struct fam_t{kind:02};");
    }
    for kind in 0..STRUCTS {
        let _ = write!(text, "\nstruct fam_t{kind:02} {{\n\tstruct fam_head head;\n");
        for number in 0..MEMBERS {
            let _ = writeln!(text, "\t{};", member(kind, number));
        }
        if kind == 3 {
            text.push_str("#ifdef VARIANT\n\tu64 added;\n#endif\n");
        }
        text.push_str("};\n");
    }
    text.push_str(
        "
static __always_inline long fam_mix(struct fam_head *head, long n)
{
	long mixed = n + head->id;

	if (head->flags & 1)
		mixed ^= head->state;
	head->flags += mixed;
	return mixed;
}

#endif
",
    );
    text
}

/// The declaration of a struct's member.
fn member(kind: usize, number: usize) -> String {
    let next = (kind + number) % STRUCTS;
    let name = format!("m{number:02}");
    match number % 10 {
        0 => format!("u64 {name}"),
        1 => format!("struct fam_t{next:02} *{name}"),
        2 => format!("u32 {name}"),
        3 => format!("char {name}[12]"),
        4 => format!("enum fam_state {name}"),
        5 => format!("unsigned int {name} : 5, {name}_more : 11"),
        6 => format!("struct fam_head {name}"),
        7 => format!("u16 {name}[4]"),
        8 => format!("union {{ s64 number; void *pointer; }} {name}"),
        _ => format!("s8 {name}"),
    }
}

fn module_sources(module: usize) -> Vec<(String, String)> {
    let name = module_name(module);
    let mut files = vec![(format!("{name}_main.c"), main_file(module))];
    for file in 0..FILES {
        let numbers = file * FUNCTIONS / FILES..(file + 1) * FUNCTIONS / FILES;
        files.push((format!("{name}_{file}.c"), functions_file(module, file, numbers)));
    }
    files
}

/// The parameter `run`, and functions that children of the module call.
fn main_file(module: usize) -> String {
    let name = module_name(module);
    let mut text = String::from(
        "// SPDX-License-Identifier: GPL-2.0-or-later\n#include <linux/module.h>\n\n#include \"fam.h\"\n\n",
    );
    for file in 0..FILES {
        let _ = writeln!(text, "long {name}_run{file}(void);");
    }
    let _ = write!(
        text,
        "long {name}_ran(long calls);

static long ran;	/* by children too */
static long calls;

noinline long {name}_ran(long more)
{{
	ran += more;
	return ran;
}}
EXPORT_SYMBOL_GPL({name}_ran);
"
    );
    let _ = write!(
        text,
        "
static int way;

static noinline __noclone void {name}_ways(long n)
{{
	if (unlikely(n & 1)) {{
#line 1000
		WRITE_ONCE(way, n);
	}} else {{
#line 1000
		WRITE_ONCE(way, 3 * n);
	}}
#line 1010
}}
"
    );
    let parent = parent(module).map(module_name);
    let _ = write!(
        text,
        "
static struct fam_kinds kinds = {{
	.tag = \"{name}\",
	.mode = 'k',
	.count = 56,
	.depth = 200,
	.level = -3,
	.low = 5,
	.high = 99,
	.below = -2,
	.first = 1,
	.second = 2,
	.pairs = {{ {{ \"one\", {name}_ran }}, {{ }} }},
	.list = LIST_HEAD_INIT(kinds.list),
	.rest = {{ 7, 8, 9 }},
}};

static noinline __noclone void {name}_kinds(struct fam_kinds *all, const char *const text)
{{
	static int times;
	static const char label[] = \"{name}\";

	WRITE_ONCE(times, times + *text + READ_ONCE(label[all->low & 1]));
}}
"
    );
    if let Some(parent) = &parent {
        let _ = write!(text, "\nlong {parent}_ran(long calls);\n");
    }
    text.push_str("\nstatic int set_run(const char *value, const struct kernel_param *parameter)\n{\n");
    for file in 0..FILES {
        let _ = writeln!(text, "\tcalls += {name}_run{file}();");
    }
    if let Some(parent) = &parent {
        let _ = writeln!(text, "\t{parent}_ran({FUNCTIONS});");
    }
    let _ = writeln!(text, "\t{name}_ways(1);\n\t{name}_ways(2);\n\t{name}_kinds(&kinds, kinds.tag);");
    text.push_str(
        "	return 0;
}

static int get_run(char *text, const struct kernel_param *parameter)
{
	return sprintf(text, \"%ld\\n\", calls);
}

static const struct kernel_param_ops run_ops = { .set = set_run, .get = get_run };
module_param_cb(run, &run_ops, NULL, 0600);
MODULE_PARM_DESC(run, \"calls each function of this module; reads as the number of calls\");
MODULE_DESCRIPTION(\"One of a generated family of modules\");
MODULE_LICENSE(\"GPL\");
",
    );
    text
}

fn functions_file(module: usize, file: usize, numbers: std::ops::Range<usize>) -> String {
    let name = module_name(module);
    let mut text = String::from("// SPDX-License-Identifier: GPL-2.0-or-later\n#include \"fam.h\"\n\n");
    for kind in 0..STRUCTS {
        let _ = writeln!(
            text,
            "static struct fam_t{kind:02} t{kind:02} = {{ .head = {{ .state = FAM_DONE, .name = \"{name}\" }}, .m03 = \"{name}\", .m09 = -7 }};"
        );
    }
    text.push_str(
        "
#ifdef VARIANT
static noinline __noclone long added(struct fam_t03 *t, long n)
{
	t->added += n;
	return t->added;
}
#endif
",
    );
    for number in numbers.clone() {
        text.push_str(&function(module, number));
    }
    let _ = write!(text, "\nlong {name}_run{file}(void);\n\nlong {name}_run{file}(void)\n{{\n\tlong sum = 0;\n\n");
    text.push_str("#ifdef VARIANT\n\tsum += added(&t03, 1);\n#endif\n");
    for number in numbers.clone() {
        let [first, second] = kinds(number);
        let _ = writeln!(text, "\tsum += {name}_f{number:04}(&t{first:02}, &t{second:02}, {number});");
    }
    let _ = write!(text, "\tWRITE_ONCE(t00.head.id, sum);\n\treturn {};\n}}\n", numbers.len());
    text
}

/// The types that the arguments of a function point to.
fn kinds(number: usize) -> [usize; 2] {
    [number % STRUCTS, (number / STRUCTS + 5) % STRUCTS]
}

fn function(module: usize, number: usize) -> String {
    let [first, second] = kinds(number);
    let mut text = format!(
        "\nstatic noinline __noclone long {}_f{number:04}(struct fam_t{first:02} *a, struct fam_t{second:02} *b, long n)\n{{\n",
        module_name(module)
    );
    text.push_str("\tlong sum = READ_ONCE(a->m00) + n;\n");
    if number.is_multiple_of(5) {
        text.push_str("\tint i;\n");
    }
    text.push('\n');
    if number % 2 == 1 {
        text.push_str("\tsum += fam_mix(&b->head, sum);\n");
    }
    if number.is_multiple_of(5) {
        text.push_str("\tfor (i = 0; i < 3; i++)\n\t\tb->m07[i] += sum;\n");
    }
    let _ = write!(
        text,
        "\tif (sum & {})\n\t\ta->m02 += sum;\n\tb->m10 = {number};\n\treturn sum;\n}}\n",
        1 << (number % 8)
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_is_called_once() {
        let files = module_sources(3);
        let text: String = files.iter().map(|(_, text)| text.as_str()).collect();
        for number in 0..FUNCTIONS {
            let name = format!("fam03_f{number:04}(");
            assert_eq!(text.matches(&name).count(), 2, "{name}: its definition and one call");
        }
    }

    #[test]
    fn parents_come_before_their_children() {
        assert!((1..MODULES).all(|module| parent(module).is_some_and(|parent| parent < module)));
        assert!(is_member("fam19") && !is_member("fam20") && !is_member("family"));
    }
}
