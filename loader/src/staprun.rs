// SPDX-License-Identifier: GPL-2.0-or-later

//! Called as `staprun` or `stapio`: translates SystemTap's options into those of spilerun, with its exit statuses, 0 and 1.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use nix::libc;

use crate::host::name;

/// Where tools look for the program that runs sessions.
pub const STAPIO: &str = "/usr/lib/systemtap/stapio";
/// First word: our own options follow, and the parent process passes signals on.
pub const SESSION: &str = "--session";

const VERSION: &str = "5.6";

/// Whether the last part of a program's path is one of these names.
pub fn is_name(name: &OsStr) -> bool {
    name == "staprun" || name == "stapio"
}

/// The action of a command line.
#[derive(Debug, PartialEq)]
pub enum Request {
    /// These, as `spilerun` takes them, the program's name first.
    Arguments(Vec<OsString>),
    /// The version is to be shown.
    Version,
    /// A mistake, in a line.
    Invalid(String),
}

/// The lines of `-V`.
pub fn version() -> String {
    let own = env!("CARGO_PKG_VERSION");
    format!(
        "Systemtap module loader/runner (version {VERSION}/spile {own})\nspilerun {own}, for modules that spile built; not SystemTap itself\n"
    )
}

/// Options as getopt(3) reads them: a value follows, may be in the same word, or there is none.
#[derive(Clone, Copy, PartialEq)]
enum OptionArgument {
    Nothing,
    /// Only in the same word.
    Maybe,
    Value,
}

fn takes(letter: u8) -> Option<OptionArgument> {
    Some(match letter {
        b'v' | b'h' | b'V' | b'w' | b'L' | b'A' | b'D' | b'R' | b'd' | b'i' => OptionArgument::Nothing,
        b'u' => OptionArgument::Maybe,
        b'b' | b'c' | b'x' | b't' | b'N' | b'o' | b'S' | b'r' | b'T' | b'C' | b'M' | b'F' | b's' => {
            OptionArgument::Value
        }
        _ => return None,
    })
}

/// The value of -T: 1 and more.
fn is_timeout(text: &str) -> bool {
    text.parse::<u32>().is_ok_and(|milliseconds| milliseconds > 0)
}

/// What staprun's options mean for spilerun.
#[derive(Default)]
struct Options {
    /// As spilerun has them, except for -A and -d.
    translated: Vec<OsString>,
    attach: bool,
    remove: bool,
}

impl Options {
    /// Adds the options of one word, without its `-`; a value that is not in the word is taken from `rest`.
    fn add<'w>(&mut self, letters: &[u8], rest: &mut impl Iterator<Item = &'w OsString>) -> Result<(), Request> {
        let mut letters = letters.iter();
        while let Some(&letter) = letters.next() {
            let takes = takes(letter).ok_or_else(|| {
                Request::Invalid(format!("invalid option -- '{}'", char::from(letter).escape_default()))
            })?;
            let here = Some(letters.as_slice()).filter(|here| !here.is_empty());
            let here = here.map(|here| OsString::from_vec(here.to_vec()));
            let value = match takes {
                OptionArgument::Nothing => None,
                OptionArgument::Maybe => here,
                OptionArgument::Value => Some(here.or_else(|| rest.next().cloned()).ok_or_else(|| {
                    Request::Invalid(format!("option requires an argument -- '{}'", char::from(letter)))
                })?),
            };
            match letter {
                b'V' => return Err(Request::Version),
                b'A' => self.attach = true,
                b'd' => self.remove = true,
                // Options without effect: kernels have uprobes; output is not polled; stap passes no descriptors here;
                // input is passed to the module in any case.
                b'T' if !value.as_deref().and_then(OsStr::to_str).is_some_and(is_timeout) => {
                    let given = value.unwrap_or_default();
                    let given = given.to_string_lossy().escape_default().to_string();
                    return Err(Request::Invalid(format!(
                        "invalid reader timeout '{given}': a number of milliseconds"
                    )));
                }
                b'u' | b'T' | b'F' | b'i' => {}
                b't' => self.translated.extend(["-x".into(), value.unwrap_or_default()]),
                _ => {
                    self.translated.push(OsString::from_vec(vec![b'-', letter]));
                    self.translated.extend(value);
                }
            }
            if takes != OptionArgument::Nothing {
                break;
            }
        }
        Ok(())
    }
}

/// `words` begin with the program's name. Options may follow the module; `--` ends them.
pub fn translate(words: &[OsString]) -> Request {
    let mut options = Options::default();
    let mut others: Vec<OsString> = Vec::new();
    let mut rest = words.iter().skip(1);
    while let Some(word) = rest.next() {
        let bytes = word.as_bytes();
        match bytes {
            b"--" => others.extend(rest.by_ref().cloned()),
            b"--help" => options.translated.push("-h".into()),
            b"--version" => return Request::Version,
            // Options that staprun does not have are spilerun's.
            [b'-', b'-', ..] => options.translated.push(word.clone()),
            [b'-', letters @ ..] if !letters.is_empty() => {
                if let Err(request) = options.add(letters, &mut rest) {
                    return request;
                }
            }
            _ => others.push(word.clone()),
        }
    }
    let Options { translated, attach, remove } = options;
    let mut arguments: Vec<OsString> = words.first().cloned().into_iter().chain(translated).collect();
    match (attach, remove) {
        (true, true) => return Request::Invalid("-A and -d cannot be given together".to_string()),
        (true, false) => arguments.push("-A".into()),
        (false, true) => arguments.push("-d".into()),
        (false, false) => {}
    }
    if others.is_empty() && (attach || remove) {
        return Request::Invalid("a module's name is missing".to_string());
    }
    // They followed `--`, and are not our options either.
    if !attach && !remove && others.iter().any(|word| word.as_bytes().starts_with(b"-")) {
        arguments.push("--".into());
    }
    arguments.extend(others);
    Request::Arguments(arguments)
}

/// Whether these words, the program's name first, were given under one of the names.
pub fn is_called(words: &[OsString]) -> bool {
    words.first().map(Path::new).and_then(Path::file_name).is_some_and(is_name)
}

/// This process is one that tools know as stapio; messages name staprun.
pub fn take_name() {
    name::be_staprun();
    // SAFETY: reads a string that ends with 0.
    let _ = unsafe { libc::prctl(libc::PR_SET_NAME, c"stapio".as_ptr()) };
}

/// The session ends in order when the parent process dies.
pub fn end_with_parent() {
    // SAFETY: only affects this process.
    let _ = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM as libc::c_ulong) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(line: &str) -> Request {
        translate(&line.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    fn ours(line: &str) -> String {
        match request(line) {
            Request::Arguments(words) => words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn each_of_its_options_has_a_meaning() {
        assert_eq!(
            ours("staprun -v -w -R -b 16 -o out -S 10,3 m.ko x=1"),
            "staprun -v -w -R -b 16 -o out -S 10,3 m.ko x=1"
        );
        assert_eq!(ours("staprun m.ko -vb16 -oout"), "staprun -v -b 16 -o out m.ko");
        assert_eq!(ours("staprun -A stap_x -o out"), "staprun -o out -A stap_x");
        assert_eq!(ours("staprun -vA stap_x"), "staprun -v -A stap_x");
        assert_eq!(ours("staprun -d stap_x"), "staprun -d stap_x");
        assert_eq!(ours("staprun -d *"), "staprun -d *");
        assert_eq!(ours("staprun -L m"), "staprun -L m");
        assert_eq!(ours("staprun -t 7 m"), "staprun -x 7 m");
        assert_eq!(ours("staprun -r 1:ssh://h -C always -M 2 -D m"), "staprun -r 1:ssh://h -C always -M 2 -D m");
        assert_eq!(ours("staprun m --stats=json -- -x"), "staprun --stats=json -- m -x");
        assert_eq!(ours("staprun -- -T5"), "staprun -- -T5");
    }

    /// staprun's -T does not end the session; -u, -F and -i have no effect.
    #[test]
    fn options_without_effect_are_omitted() {
        assert_eq!(ours("staprun -u -T 200 -F 5 -i m.ko"), "staprun m.ko");
        assert_eq!(ours("staprun -u/lib/uprobes.ko m.ko"), "staprun m.ko");
    }

    #[test]
    fn mistakes_and_the_version_are_reported() {
        assert_eq!(request("staprun -V"), Request::Version);
        assert!(version().starts_with("Systemtap module loader/runner (version 5.6/"));
        for line in ["staprun -b", "staprun -z m", "staprun -A", "staprun -d -A x", "staprun -T 0 m", "staprun -T x m"]
        {
            assert!(matches!(request(line), Request::Invalid(_)), "{line}");
        }
        assert!(
            is_called(&["/usr/bin/staprun".into()]) && is_called(&[STAPIO.into()]) && !is_called(&["spilerun".into()])
        );
    }
}
