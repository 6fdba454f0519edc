// SPDX-License-Identifier: GPL-2.0-or-later

//! How Kbuild makes modules for one kernel: the commands that it recorded, and the files that all modules share.
//!
//! A recipe is recorded once ([`super::record`]) and cached; [`super::replay`] executes it.

use std::path::Path;

use spile_base::cache::Entry;

/// Placeholder for the work directory in the words of a command.
const WORK: char = '\u{1}';
/// Placeholder for the module's name.
pub(super) const NAME: char = '\u{2}';
/// A separate word: the objects that a link takes.
pub(super) const OBJECTS: &str = "\u{3}";

/// A program and its arguments.
pub(super) type Argv = Vec<String>;

/// The cached data for one kernel, compiler and version of the runtime.
pub(super) struct Recipe {
    /// `spile_plain.o`, the runtime.
    pub(super) plain: Vec<u8>,
    /// None: modules are built by Kbuild.
    pub(super) steps: Result<Steps, String>,
}

/// The steps from C to a module without make.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Steps {
    /// Commands run in the work directory (Kbuild since 6.13), else in the kernel's build directory.
    pub(super) in_work: bool,
    /// Variables of Kbuild's environment, `NAME=VALUE`.
    pub(super) environment: Vec<String>,
    /// `script.c` to a finished `script.o`.
    pub(super) script: Vec<Argv>,
    /// `embedded.c` to a finished `embedded.o`, with kernel headers.
    pub(super) embedded: Vec<Argv>,
    /// The objects to `NAME.o`.
    pub(super) module: Vec<Argv>,
    /// `NAME.o`, `NAME.mod.o` and whatever else the kernel links into `NAME.ko`.
    pub(super) last: Vec<Argv>,
    /// The objects and whatever else to `NAME.ko`, in place of `module` and `last`. Empty: these are needed (shorter.rs).
    pub(super) together: Vec<Argv>,
    /// `NAME.mod.o` of the reference module.
    pub(super) info: Vec<u8>,
    /// Other files below the work directory that the commands read.
    pub(super) files: Vec<(String, Vec<u8>)>,
}

/// The reference module's name.
pub(super) const REFERENCE: &str = "spile_runtime";

impl Recipe {
    /// The recipe as a cache entry; `about` describes it to a person.
    pub(super) fn to_entry(&self, about: &str) -> Entry {
        let entry = Entry::new(about).with("plain.o", self.plain.as_slice());
        let steps = match &self.steps {
            Ok(steps) => steps,
            Err(why) => return entry.with("why not", why.as_bytes()),
        };
        let entry = entry
            .with("in work", if steps.in_work { "yes" } else { "no" })
            .with("environment", steps.environment.join("\n"))
            .with("script", to_text(&steps.script))
            .with("embedded", to_text(&steps.embedded))
            .with("module", to_text(&steps.module))
            .with("last", to_text(&steps.last))
            .with("together", to_text(&steps.together))
            .with("info.o", steps.info.as_slice());
        steps.files.iter().fold(entry, |entry, (name, bytes)| entry.with(&format!("file {name}"), bytes.as_slice()))
    }

    /// None: not an entry of this kind.
    pub(super) fn from_entry(mut entry: Entry) -> Option<Recipe> {
        let plain = entry.take("plain.o")?;
        if let Some(why) = entry.text("why not") {
            return Some(Recipe { plain, steps: Err(why.to_string()) });
        }
        let commands = |name: &str| entry.text(name).map(from_text);
        let steps = Steps {
            in_work: entry.text("in work")? == "yes",
            environment: entry.text("environment")?.lines().map(str::to_string).collect(),
            script: commands("script")?,
            embedded: commands("embedded")?,
            module: commands("module")?,
            last: commands("last")?,
            together: commands("together")?,
            info: entry.take("info.o")?,
            files: entry.take_below("file "),
        };
        Some(Recipe { plain, steps: Ok(steps) })
    }
}

/// Words contain no NUL and no line break (shell.rs).
fn to_text(commands: &[Argv]) -> String {
    commands.iter().map(|words| words.join("\0") + "\n").collect()
}

fn from_text(text: &str) -> Vec<Argv> {
    text.lines().map(|line| line.split('\0').map(str::to_string).collect()).collect()
}

/// Replaces work directory and module name in recorded words by their placeholders.
pub(super) fn generalize(words: &[String], work: &Path) -> Argv {
    let work = work.display().to_string();
    words.iter().map(|word| word.replace(&work, &WORK.to_string()).replace(REFERENCE, &NAME.to_string())).collect()
}

/// Replaces the objects of a recorded link, which are adjacent, by their placeholder.
pub(super) fn generalize_objects(words: &mut Argv) {
    let named = |word: &String| word.ends_with(".o") && !word.ends_with(&format!("{NAME}.o"));
    if let Some(first) = words.iter().position(named) {
        words.retain(|word| !named(word));
        words.insert(first, OBJECTS.to_string());
    }
}

/// The words for one module.
pub(super) fn specialize(words: &[String], work: &Path, name: &str, objects: &[String]) -> Argv {
    let work = work.display().to_string();
    let mut special = Argv::with_capacity(words.len() + objects.len());
    for word in words {
        if word == OBJECTS {
            special.extend(objects.iter().cloned());
        } else {
            special.push(word.replace(WORK, &work).replace(NAME, name));
        }
    }
    special
}

/// A path below the work directory from generalised words; None for others.
pub(super) fn below_work(word: &str, in_work: bool) -> Option<&str> {
    match word.strip_prefix(WORK) {
        Some(rest) => rest.strip_prefix('/'),
        None if in_work && !word.starts_with(['/', '-', '@']) => Some(word.trim_start_matches("./")),
        None => None,
    }
}

/// Whether the word is that file of the module (`.o`, `.mod.o`, `.ko`) in the work directory.
pub(super) fn is_modules(word: &str, suffix: &str, in_work: bool) -> bool {
    below_work(word, in_work).and_then(|path| path.strip_prefix(NAME)) == Some(suffix)
}

/// Variables of this process that change what Kbuild does.
pub(super) fn environment() -> [String; 2] {
    ["ARCH", "CROSS_COMPILE"].map(|name| std::env::var(name).unwrap_or_default())
}

/// Version of the entries' contents and of how a recipe is recorded.
pub(super) const FORMAT: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Argv {
        text.split(' ').map(str::to_string).collect()
    }

    #[test]
    fn from_one_module_to_another() {
        let recorded = words(&format!("gcc -DKBUILD_MODNAME=\"{REFERENCE}\" -c -o /tmp/w/script.o /tmp/w/script.c"));
        let general = generalize(&recorded, Path::new("/tmp/w"));
        let special = specialize(&general, Path::new("/x"), "mine", &[]);
        assert_eq!(special, words("gcc -DKBUILD_MODNAME=\"mine\" -c -o /x/script.o /x/script.c"));
    }

    #[test]
    fn objects_of_a_link() {
        let recorded = words(&format!("ld -r -o /w/{REFERENCE}.o /w/script.o /w/embedded.o /w/runtime-c/runtime.o"));
        let mut general = generalize(&recorded, Path::new("/w"));
        generalize_objects(&mut general);
        let objects = ["/x/a.o".to_string(), "/x/b.o".to_string()];
        assert_eq!(specialize(&general, Path::new("/x"), "m", &objects), words("ld -r -o /x/m.o /x/a.o /x/b.o"));
        let mut from_file =
            generalize(&words(&format!("ld -r -o /w/{REFERENCE}.o @/w/{REFERENCE}.mod")), Path::new("/w"));
        generalize_objects(&mut from_file);
        assert_eq!(specialize(&from_file, Path::new("/x"), "m", &objects), words("ld -r -o /x/m.o @/x/m.mod"));
    }

    #[test]
    fn kept_and_read_again() {
        let steps = Steps {
            in_work: true,
            environment: vec!["ARCH=x86".into(), "A=".into()],
            script: vec![words("gcc -c"), words("objtool x")],
            last: vec![vec!["ld".into(), String::new(), "\u{1}/x".into()]],
            together: vec![words("ld both")],
            info: vec![1, 2],
            files: vec![(".module-common.o".into(), vec![3])],
            ..Steps::default()
        };
        let recipe = Recipe { plain: vec![4], steps: Ok(steps.clone()) };
        let again = Recipe::from_entry(recipe.to_entry("about")).unwrap();
        assert_eq!((again.plain, again.steps), (vec![4], Ok(steps)));
        let refused = Recipe { plain: vec![4], steps: Err("because".into()) };
        assert_eq!(Recipe::from_entry(refused.to_entry("about")).unwrap().steps, Err("because".into()));
        assert!(Recipe::from_entry(Entry::new("x")).is_none());
    }
}
