// SPDX-License-Identifier: GPL-2.0-or-later

//! Records a [`Recipe`]: Kbuild builds a reference module together with the runtime, and the commands recorded in its
//! `.cmd` files are run once more. Only if that gives an equal module ([`compare`]) is the recipe used for others.

use std::path::Path;

use super::compiler::Compiler;
use super::embed::Runtime;
use super::recipe::{self, Argv, REFERENCE, Recipe, Steps};
use super::{BuildError, Request, compare, make, modpost, replay, shell};

/// Generated headers of the runtime that embedded C may need.
const GENERATED: [&str; 1] = ["runtime-c/spile_features.h"];

/// Builds in `work`, which must be empty.
pub(super) fn record(
    request: &Request,
    runtime: &Runtime,
    compiler: &Compiler,
    work: &Path,
) -> Result<Recipe, BuildError> {
    runtime.unpack(work)?;
    let reference = |name: &str| runtime.file(&format!("reference/{name}")).map(<[u8]>::to_vec).unwrap_or_default();
    let (script, embedded) = (reference("script.c"), reference("embedded.c"));
    make::write(&work.join("script.c"), &script)?;
    make::write(&work.join("embedded.c"), &embedded)?;
    let variables =
        [format!("SPILE_MODULE={REFERENCE}"), "SPILE_EMBEDDED=1".into(), "SPILE_PLAIN=1".into(), "V=1".into()];
    let log = make::run(request, compiler, work, &variables, &["modules"])?;
    let plain = make::read(&work.join("spile_plain.o"))?;
    let steps = read(work, &log).and_then(|steps| {
        let module = std::fs::read(work.join(format!("{REFERENCE}.ko")))
            .map_err(|error| format!("reading the reference module: {error}"))?;
        let again = work.join("again");
        std::fs::create_dir(&again).map_err(|error| format!("making {}: {error}", again.display()))?;
        let source = replay::Source {
            name: REFERENCE,
            script: &script,
            embedded: Some(&embedded),
            tables: None,
            stacks: &|_| None,
        };
        let replayed =
            replay::follow(&steps, &plain, &source, runtime, request, &again).map_err(|error| error.reason())?;
        let replayed = std::fs::read(&replayed).map_err(|error| format!("reading {}: {error}", replayed.display()))?;
        match compare::differences(&module, &replayed)?.as_slice() {
            [] => Ok(steps),
            [first, others @ ..] => Err(format!(
                "Kbuild's reference module differs from the one made without it in {first} (and {} more)",
                others.len()
            )),
        }
    });
    Ok(Recipe { plain, steps })
}

/// Reads the `.cmd` files of the reference module. Err: what could not be interpreted.
fn read(work: &Path, log: &str) -> Result<Steps, String> {
    let mut script = commands(work, "script.o")?;
    let mut embedded = commands(work, "embedded.o")?;
    let in_work = output(&script).is_some_and(|path| !path.starts_with('/'));
    let mut module = commands(work, &format!("{REFERENCE}.o"))?;
    let mut last = commands(work, &format!("{REFERENCE}.ko"))?;
    for (commands, object) in [(&mut script, "script.o"), (&mut embedded, "embedded.o")] {
        add_objtool(commands, log, object, work);
    }
    header_free(script.first_mut().ok_or("Kbuild recorded no compilation")?);
    for commands in [&mut script, &mut embedded] {
        let compile = commands.first_mut().ok_or("Kbuild recorded no compilation")?;
        without_dependencies(compile);
        // Compiler and assembler run in parallel; the object is the same.
        compile.push("-pipe".into());
    }
    module.first_mut().map(recipe::generalize_objects).ok_or("Kbuild recorded no link")?;
    last.retain(|words| words.as_slice() != ["true"]);
    let mut files = Vec::new();
    let link = last.first().ok_or("Kbuild recorded no last link")?;
    let read = |file: &str| std::fs::read(work.join(file)).map_err(|error| format!("reading {file}: {error}"));
    for word in link {
        let modules = [".o", ".mod.o", ".ko"].iter().any(|suffix| recipe::is_modules(word, suffix, in_work));
        if let Some(file) = recipe::below_work(word, in_work).filter(|file| file.ends_with(".o") && !modules) {
            files.push((file.to_string(), read(file)?));
        }
    }
    if ![".o", ".mod.o", ".ko"].iter().all(|suffix| link.iter().any(|word| recipe::is_modules(word, suffix, in_work))) {
        return Err("Kbuild links modules in a way of its own".into());
    }
    for generated in GENERATED {
        if let Ok(bytes) = std::fs::read(work.join(generated)) {
            files.push((generated.to_string(), bytes));
        }
    }
    let info = read(&format!("{REFERENCE}.mod.o"))?;
    if !modpost::is_readable(&info) {
        return Err("Kbuild's objects are not 64-bit ELF".into());
    }
    let environment = std::fs::read_to_string(work.join("spile_environment")).unwrap_or_default();
    let environment = recipe::generalize(&environment.lines().map(str::to_string).collect::<Vec<_>>(), work);
    Ok(Steps { in_work, environment, script, embedded, module, last, info, files, ..Steps::default() })
}

/// The commands of a target in the work directory: `cmd_TARGET := ...`, since 6.3 `savedcmd_TARGET := ...`.
fn commands(work: &Path, target: &str) -> Result<Vec<Argv>, String> {
    let file = work.join(format!(".{target}.cmd"));
    let text = std::fs::read_to_string(&file).map_err(|error| format!("reading {}: {error}", file.display()))?;
    let line = text.lines().find(|line| line.starts_with("cmd_") || line.starts_with("savedcmd_"));
    let command = line
        .and_then(|line| line.split_once(":="))
        .ok_or_else(|| format!("Kbuild recorded no command for {target}"))?;
    let commands = shell::commands(command.1).ok_or_else(|| format!("the command for {target} needs a shell"))?;
    Ok(commands.iter().map(|words| recipe::generalize(words, work)).collect())
}

/// The `-o` argument of the first command.
fn output(commands: &[Argv]) -> Option<&str> {
    let words = commands.first()?;
    words
        .iter()
        .skip_while(|word| *word != "-o")
        .nth(1)
        .map(|word| if word.starts_with('\u{1}') { "/" } else { word.as_str() })
}

/// Until 5.18 objtool is not part of the recorded command; only the log has it.
fn add_objtool(commands: &mut Vec<Argv>, log: &str, object: &str, work: &Path) {
    let is_objtool = |words: &Argv| words.first().is_some_and(|program| program.ends_with("/objtool"));
    if commands.iter().any(is_objtool) {
        return;
    }
    let object = work.join(object).display().to_string();
    let lines = log.lines().filter(|line| line.contains("/objtool ") && line.trim_end().ends_with(&object));
    let found = lines.filter_map(|line| shell::commands(line)?.into_iter().find(is_objtool)).next();
    commands.extend(found.map(|words| recipe::generalize(&words, work)));
}

/// The compilation of a unit that includes no kernel header: without the header directories and the headers included
/// before all others; with the runtime's directory.
fn header_free(words: &mut Argv) {
    let mut others = Argv::with_capacity(words.len());
    let mut old = std::mem::take(words).into_iter();
    while let Some(word) = old.next() {
        match word.as_str() {
            "-include" | "-I" | "-isystem" | "-iquote" | "-idirafter" => {
                old.next();
            }
            _ if word.starts_with("-I") => {}
            _ => others.push(word),
        }
    }
    others.push("-I\u{1}/runtime-c".into());
    *words = others;
}

/// `-Wp,-MMD,FILE`: the list of headers is for make.
fn without_dependencies(words: &mut Argv) {
    words.retain(|word| !word.starts_with("-Wp,-MD,") && !word.starts_with("-Wp,-MMD,"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Argv {
        text.split(' ').map(str::to_string).collect()
    }

    #[test]
    fn a_unit_without_kernel_headers() {
        let mut command =
            words("gcc -Wp,-MMD,/w/.x.d -nostdinc -I/usr/include -I ./include -include /k/kconfig.h -O2 -c -o x.o x.c");
        header_free(&mut command);
        without_dependencies(&mut command);
        assert_eq!(command, words("gcc -nostdinc -O2 -c -o x.o x.c -I\u{1}/runtime-c"));
    }

    /// Files as written by Kbuild of 6.1 and of 6.13.
    fn recorded(obj: &str, prefix: &str) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let work = directory.path();
        let obj = obj.replace("WORK", &work.display().to_string());
        let write = |target: &str, command: &str| {
            std::fs::write(
                work.join(format!(".{target}.cmd")),
                format!("{prefix}_{obj}{target} := {command}\n\nsource_x := y\n"),
            )
            .unwrap();
        };
        for unit in ["script", "embedded"] {
            let compile = format!(
                "gcc-12 -Wp,-MMD,{obj}.{unit}.o.d -I./include -DKBUILD_MODNAME='\"{REFERENCE}\"' -c -o {obj}{unit}.o {obj}{unit}.c   ; ./tools/objtool/objtool --orc {obj}{unit}.o"
            );
            write(&format!("{unit}.o"), &compile);
        }
        write(&format!("{REFERENCE}.o"), &format!("ld -r -o {obj}{REFERENCE}.o @{obj}{REFERENCE}.mod "));
        write(
            &format!("{REFERENCE}.ko"),
            &format!(
                "ld -r -T module.lds -o {obj}{REFERENCE}.ko {obj}{REFERENCE}.o {obj}{REFERENCE}.mod.o {obj}.module-common.o;  true"
            ),
        );
        std::fs::write(work.join(".module-common.o"), "common").unwrap();
        let object = object::write::Object::new(
            object::BinaryFormat::Elf,
            object::Architecture::X86_64,
            object::Endianness::Little,
        );
        std::fs::write(work.join(format!("{REFERENCE}.mod.o")), object.write().unwrap()).unwrap();
        directory
    }

    #[test]
    fn both_forms_of_paths() {
        for (obj, prefix, in_work) in [("WORK/", "cmd", false), ("", "savedcmd", true)] {
            let directory = recorded(obj, prefix);
            let steps = read(directory.path(), "").unwrap();
            assert_eq!(steps.in_work, in_work);
            assert_eq!(steps.script.len(), 2);
            assert_eq!(steps.last.len(), 1);
            assert_eq!(steps.files, [(".module-common.o".to_string(), b"common".to_vec())]);
            assert!(!steps.script[0].iter().any(|word| word.contains("include") || word.contains("MMD")));
            assert!(steps.embedded[0].iter().any(|word| word == "-I./include"));
        }
    }

    #[test]
    fn objtool_of_older_kernels_is_in_the_log() {
        let mut commands = vec![words("gcc -c")];
        let log = "  CC x\n  ./tools/objtool/objtool orc generate  --module --no-fp /w/other.o\n  ./tools/objtool/objtool orc generate  --module /w/script.o\n";
        add_objtool(&mut commands, log, "script.o", Path::new("/w"));
        assert_eq!(commands[1], words("./tools/objtool/objtool orc generate --module \u{1}/script.o"));
        add_objtool(&mut commands, log, "script.o", Path::new("/w"));
        assert_eq!(commands.len(), 2);
    }

    #[test]
    fn what_is_not_understood_is_said() {
        let directory = recorded("WORK/", "cmd");
        let file = directory.path().join(format!(".{REFERENCE}.ko.cmd"));
        std::fs::write(&file, "cmd_x := ld -r -o x.ko x.lto.o\n").unwrap();
        assert!(read(directory.path(), "").unwrap_err().contains("way of its own"));
        std::fs::write(&file, "cmd_x := ld | tee\n").unwrap();
        assert!(read(directory.path(), "").unwrap_err().contains("needs a shell"));
        std::fs::remove_file(&file).unwrap();
        assert!(read(directory.path(), "").is_err());
    }
}
