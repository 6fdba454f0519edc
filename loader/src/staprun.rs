// SPDX-License-Identifier: GPL-2.0-or-later

//! Called as `staprun` or `stapio`: translates SystemTap's options into those of spilerun, with its exit statuses, 0 and 1.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use nix::libc;

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

/// `words` begin with the program's name. Options may follow the module; `--` ends them.
pub fn translate(words: &[OsString]) -> Request {
    let mut options: Vec<OsString> = Vec::new();
    let mut others: Vec<OsString> = Vec::new();
    let (mut attach, mut remove) = (false, false);
    let mut rest = words.iter().skip(1);
    while let Some(word) = rest.next() {
        let bytes = word.as_bytes();
        match bytes {
            b"--" => {
                others.extend(rest.by_ref().cloned());
                continue;
            }
            b"--help" => options.push("-h".into()),
            b"--version" => return Request::Version,
            // Options that staprun does not have are spilerun's.
            [b'-', b'-', ..] => options.push(word.clone()),
            [b'-', _, ..] => {}
            _ => others.push(word.clone()),
        }
        if !bytes.starts_with(b"-") || bytes.starts_with(b"--") || bytes.len() < 2 {
            continue;
        }
        let mut at = 1;
        while let Some(&letter) = bytes.get(at) {
            at += 1;
            let Some(takes) = takes(letter) else {
                return Request::Invalid(format!("invalid option -- '{}'", char::from(letter).escape_default()));
            };
            let here = bytes.get(at..).filter(|here| !here.is_empty()).map(|here| OsString::from_vec(here.to_vec()));
            let value = match takes {
                OptionArgument::Nothing => None,
                OptionArgument::Maybe => here,
                OptionArgument::Value => match here.or_else(|| rest.next().cloned()) {
                    None => {
                        return Request::Invalid(format!("option requires an argument -- '{}'", char::from(letter)));
                    }
                    value => value,
                },
            };
            match letter {
                b'V' => return Request::Version,
                b'A' => attach = true,
                b'd' => remove = true,
                // Options without effect: kernels have uprobes; output is not polled; stap passes no descriptors here;
                // input is passed to the module in any case.
                b'u' | b'T' | b'F' | b'i' => {}
                b't' => options.extend(["-x".into(), value.clone().unwrap_or_default()]),
                _ => {
                    options.push(OsString::from_vec(vec![b'-', letter]));
                    options.extend(value.clone());
                }
            }
            if takes != OptionArgument::Nothing {
                break;
            }
        }
    }
    let mut arguments: Vec<OsString> = words.first().cloned().into_iter().chain(options).collect();
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

/// This process is one that tools know as stapio.
pub fn take_name() {
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
        for line in ["staprun -b", "staprun -z m", "staprun -A", "staprun -d -A x"] {
            assert!(matches!(request(line), Request::Invalid(_)), "{line}");
        }
        assert!(
            is_called(&["/usr/bin/staprun".into()]) && is_called(&[STAPIO.into()]) && !is_called(&["spilerun".into()])
        );
    }
}
