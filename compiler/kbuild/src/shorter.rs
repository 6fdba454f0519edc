// SPDX-License-Identifier: GPL-2.0-or-later

//! Shorter ways to the same module: without the compiler's driver, and with one link instead of two. Each is tried once for
//! a kernel, with the reference module that a recipe was recorded with, and taken only where the result is the same.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use super::commands::{Runner, run_all};
use super::compiler::Compiler;
use super::embed::Runtime;
use super::recipe::{self, Argv, NAME, OBJECTS, REFERENCE, Recipe, Steps};
use super::{Request, compare, make, shell};

/// The recipe with what is shorter and gives the same; `recorded`: where it was recorded.
pub(super) fn shorten(
    recipe: Recipe,
    request: &Request,
    runtime: &Runtime,
    compiler: &Compiler,
    recorded: &Path,
) -> Recipe {
    let Recipe { plain, steps } = recipe;
    let steps = steps.map(|mut steps| {
        // What was made by the recipe itself, to compare it with Kbuild's.
        let again = recorded.join("again");
        let direct = compiler.is_driver.then(|| directly(&steps, request, runtime, recorded, &again)).flatten();
        steps.script = direct.unwrap_or(steps.script);
        steps.together = one_link(&steps, request, &again).unwrap_or_default();
        steps
    });
    Recipe { plain, steps }
}

fn runner<'a>(steps: &Steps, request: &'a Request, work: &'a Path) -> Runner<'a> {
    Runner {
        work,
        directory: if steps.in_work { work } else { &request.build_dir },
        environment: recipe::specialize(&steps.environment, work, REFERENCE, &[]),
        verbosity: request.verbosity,
        stages: Mutex::default(),
    }
}

/// The commands for `script.o` with those that gcc itself would run, and without warnings, which nobody reads. None: they are
/// not known, or the object is another one.
fn directly(steps: &Steps, request: &Request, runtime: &Runtime, recorded: &Path, again: &Path) -> Option<Vec<Argv>> {
    let direct = recorded.join("direct");
    let source = std::fs::read(again.join("script.c")).ok()?;
    let expected = std::fs::read(again.join("script.o")).ok()?;
    std::fs::create_dir(&direct).ok()?;
    runtime.unpack_for(&[&source], &direct).ok()?;
    make::write(&direct.join("script.c"), &source).ok()?;
    let runner = runner(steps, request, &direct);
    let (driver, others) = steps.script.split_first()?;
    let words: Argv = driver.iter().filter(|word| *word != "-pipe").cloned().collect();
    let words = recipe::specialize(&words, &direct, REFERENCE, &[]);
    let mut command = Command::new(words.first()?);
    make::environment(&mut command, &direct);
    command.envs(runner.environment.iter().filter_map(|variable| variable.split_once('=')));
    command.args(words.iter().skip(1)).arg("-###").current_dir(runner.directory).stdin(Stdio::null());
    let said = spile_base::programs::output(&mut command).ok().filter(|output| output.status.success())?;
    let mut script = programs(&String::from_utf8_lossy(&said.stderr), &direct)?;
    script.extend(others.iter().cloned());
    run_all(&script, REFERENCE, &[], &runner).ok()?;
    (std::fs::read(direct.join("script.o")).ok()? == expected).then_some(script)
}

/// Compiler and assembler, from what `gcc -###` prints: a line for each, which begins with a space.
fn programs(text: &str, work: &Path) -> Option<Vec<Argv>> {
    let lines = text.lines().filter(|line| line.starts_with(' '));
    let commands: Option<Vec<Vec<Argv>>> = lines.map(shell::commands).collect();
    let [compile, assemble] = <[Argv; 2]>::try_from(commands?.concat()).ok()?;
    let is = |words: &Argv, name: &str| {
        words.first().is_some_and(|program| Path::new(program).file_name().is_some_and(|file| file == name))
    };
    if !is(&compile, "cc1") || !is(&assemble, "as") {
        return None;
    }
    // A temporary file of gcc.
    let between = compile.iter().skip_while(|word| *word != "-o").nth(1)?;
    let ours = work.join("script.s").display().to_string();
    let replaced = |words: &Argv| -> Argv {
        let words = words.iter().filter(|word| !is_warning(word));
        let words: Argv = words.map(|word| if word == between { ours.clone() } else { word.clone() }).collect();
        recipe::generalize(&words, work)
    };
    (assemble.last() == Some(between)).then(|| vec![replaced(&compile), replaced(&assemble)])
}

/// An option that only warns. What is an error stays one.
fn is_warning(word: &str) -> bool {
    word.starts_with("-W") && !word.starts_with("-Werror") && !word.starts_with("-Wno-")
}

/// The objects and the module's description linked at once. None: Kbuild does more than two links, or the module is
/// another one.
fn one_link(steps: &Steps, request: &Request, again: &Path) -> Option<Vec<Argv>> {
    let commands = vec![together(steps)?];
    let module = again.join(format!("{REFERENCE}.ko"));
    let expected = std::fs::read(&module).ok()?;
    let objects = ["script.o", "embedded.o", super::replay::PLAIN].map(|name| again.join(name).display().to_string());
    run_all(&commands, REFERENCE, &objects, &runner(steps, request, again)).ok()?;
    let made = std::fs::read(&module).ok()?;
    compare::differences(&expected, &made).is_ok_and(|differences| differences.is_empty()).then_some(commands)
}

/// The last link, of the objects in place of `NAME.o`, with the first one's script before its own.
fn together(steps: &Steps) -> Option<Argv> {
    let ([first], [last]) = (steps.module.as_slice(), steps.last.as_slice()) else { return None };
    let script = first
        .windows(2)
        .find(|words| matches!(words, [option, file] if option == "-T" && file.ends_with("/text.lds")))?;
    // A list of the objects: NAME.mod.
    let list = |word: &&String| word.starts_with('@') && word.ends_with(&format!("{NAME}.mod"));
    let objects = first.iter().find(|word| *word == OBJECTS || list(word))?;
    let (linker, rest) = last.split_first()?;
    let mut words: Argv = [linker].into_iter().chain(script).cloned().collect();
    let mut is_replaced = false;
    for word in rest {
        if recipe::is_modules(word, ".o", steps.in_work) {
            is_replaced = true;
            words.push(objects.clone());
        } else {
            words.push(word.clone());
        }
    }
    is_replaced.then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Argv {
        text.split(' ').map(str::to_string).collect()
    }

    #[test]
    fn what_gcc_runs() {
        let said = "Using built-in specs.\nCOLLECT_GCC=gcc\n \
                    /usr/lib/gcc/cc1 -quiet -D \"NAME=\\\"a\\\"\" /w/script.c -Wall -Werror=return-type -Wno-main -O2 -o /tmp/cc1.s\n\
                    COLLECT_GCC_OPTIONS='-c'\n as --64 -o /w/script.o /tmp/cc1.s\n";
        let [compile, assemble] = <[Argv; 2]>::try_from(programs(said, Path::new("/w")).unwrap()).unwrap();
        let expected =
            "/usr/lib/gcc/cc1 -quiet -D NAME=\"a\" \u{1}/script.c -Werror=return-type -Wno-main -O2 -o \u{1}/script.s";
        assert_eq!(compile, words(expected));
        assert_eq!(assemble, words("as --64 -o \u{1}/script.o \u{1}/script.s"));
        // A compiler that assembles itself, or another step.
        assert_eq!(programs(" /usr/bin/clang -cc1 -o /w/script.o /w/script.c\n", Path::new("/w")), None);
        assert_eq!(programs(&format!("{said} objcopy /w/script.o\n"), Path::new("/w")), None);
    }

    #[test]
    fn both_links_in_one() {
        let steps = |module: &str, last: &str| Steps {
            module: vec![words(module)],
            last: vec![words(last)],
            ..Steps::default()
        };
        let last = "ld -r --build-id=sha1 -T module.lds -o \u{1}/\u{2}.ko \u{1}/\u{2}.o \u{1}/\u{2}.mod.o";
        let both = |objects: &str| {
            format!(
                "ld -T \u{1}/runtime-c/text.lds -r --build-id=sha1 -T module.lds -o \u{1}/\u{2}.ko {objects} \u{1}/\u{2}.mod.o"
            )
        };
        for objects in [OBJECTS.to_string(), format!("@\u{1}/{NAME}.mod")] {
            let first = format!("ld -T \u{1}/runtime-c/text.lds -r -o \u{1}/\u{2}.o {objects}");
            assert_eq!(together(&steps(&first, last)), Some(words(&both(&objects))));
        }
        assert_eq!(together(&steps("ld -r -o \u{1}/\u{2}.o a.o", last)), None);
        let mut more = steps(&format!("ld -T \u{1}/runtime-c/text.lds -r -o \u{1}/\u{2}.o {OBJECTS}"), last);
        more.module.push(words("objtool --link"));
        assert_eq!(together(&more), None);
    }
}
