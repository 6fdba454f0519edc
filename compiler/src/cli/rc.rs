// SPDX-License-Identifier: GPL-2.0-or-later

//! Options from the file `rc`: of `$SYSTEMTAP_DIR`, or of `.systemtap` at home.
//!
//! Its lines are split into words as a shell does, with quotes, `\`, `#` comments, `$NAME` and `~`, and stand before the
//! words of the command line.

use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use spile_base::{cache, read};

/// Most bytes that such a file may have.
const MOST_BYTES: u64 = 1 << 20;

/// The file, whether it is there or not.
pub fn path() -> Option<PathBuf> {
    let directory = std::env::var_os("SYSTEMTAP_DIR").map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".systemtap"));
    Some(directory.or_else(home)?.join("rc"))
}

/// Whether the options of a file may be used: they include `-g` and `-c`. The file must belong to the user or root, and not
/// be writable by everybody.
fn is_trusted(file: &Metadata) -> bool {
    let is_own = file.uid() == 0 || file.uid() == nix::unistd::geteuid().as_raw();
    is_own && file.mode() & 0o002 == 0
}

/// The file, by the real name of its directory. For root an error if another user can write on the way: a link there may lead to
/// a file that belongs to root and has that user's words in it, as /proc/PID/cmdline.
fn real(path: &Path) -> std::io::Result<PathBuf> {
    std::fs::symlink_metadata(path)?;
    let directory = path.parent().unwrap_or(Path::new("/")).canonicalize()?;
    cache::check_scratch_parent(&directory).map_err(|why| {
        std::io::Error::other(format!(
            "{why}: its options are not taken; set SYSTEMTAP_DIR, or HOME, to a directory of yours"
        ))
    })?;
    Ok(directory.join("rc"))
}

/// The words of a command line with those of the file inserted after the program's name; the error names the file.
pub fn with_options(mut arguments: Vec<OsString>) -> Result<Vec<OsString>, String> {
    let Some(path) = path() else { return Ok(arguments) };
    let text = match real(&path).and_then(|real| read::regular_of(&real, MOST_BYTES, is_trusted)) {
        Ok(Some(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
        Ok(None) => {
            return Err(format!(
                "{}: it belongs to neither you nor root, or everybody may write it: its options are not taken",
                path.display()
            ));
        }
        // A home may be /dev/null.
        Err(error)
            if error.kind() == std::io::ErrorKind::NotFound
                || error.kind() == std::io::ErrorKind::NotADirectory && std::env::var_os("SYSTEMTAP_DIR").is_none() =>
        {
            return Ok(arguments);
        }
        Err(error) => return Err(format!("reading {}: {error}", path.display())),
    };
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let mut words = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let found = split(line, &variable).map_err(|what| format!("{}:{}: {what}", path.display(), number + 1))?;
        words.extend(found.into_iter().map(OsString::from));
    }
    let at = arguments.len().min(1);
    arguments.splice(at..at, words);
    Ok(arguments)
}

/// Splits a line into words. `variable` gives the value of `$NAME`. The error says what is unfinished.
///
/// The crate `shell-words` supports neither variables nor `~`, which rc files use.
pub fn split(line: &str, variable: &dyn Fn(&str) -> String) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('\'', Some('\'')) | ('"', Some('"')) => quote = None,
            (_, Some('\'')) => word.get_or_insert_default().push(letter),
            ('\'' | '"', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            ('\\', _) => word.get_or_insert_default().push(letters.next().ok_or("nothing follows the last `\\`")?),
            ('$', _) => {
                let braced = letters.next_if_eq(&'{').is_some();
                let mut name = String::new();
                while let Some(letter) = letters.next_if(|letter| letter.is_ascii_alphanumeric() || *letter == '_') {
                    name.push(letter);
                }
                if braced && letters.next() != Some('}') {
                    return Err("a `}` is missing");
                }
                let value = if name.is_empty() { "$".to_string() } else { variable(&name) };
                word.get_or_insert_default().push_str(&value);
            }
            ('#', None) if word.is_none() => break,
            ('~', None) if word.is_none() && letters.peek().is_none_or(|next| *next == '/' || next.is_whitespace()) => {
                word = Some(variable("HOME"));
            }
            (_, None) if letter.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    if quote.is_some() {
        return Err("a quote is not closed");
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Result<Vec<String>, &'static str> {
        split(line, &|name| format!("<{name}>"))
    }

    #[test]
    fn only_the_users_own_file_is_trusted() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let rc = directory.path().join("rc");
        std::fs::write(&rc, "-g").unwrap();
        for (mode, trusted) in [(0o644, true), (0o600, true), (0o664, true), (0o646, false)] {
            std::fs::set_permissions(&rc, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(is_trusted(&rc.metadata().unwrap()), trusted, "{mode:o}");
        }
        if nix::unistd::geteuid().is_root() {
            std::fs::set_permissions(&rc, std::fs::Permissions::from_mode(0o644)).unwrap();
            std::os::unix::fs::chown(&rc, Some(4711), None).unwrap();
            assert!(!is_trusted(&rc.metadata().unwrap()));
        }
    }

    /// It belongs to root and has the words of whoever started the process.
    #[test]
    fn no_link_of_another_user_is_followed() {
        use std::os::unix::fs::{chown, symlink};
        let directory = tempfile::tempdir().unwrap();
        let rc = directory.path().join("rc");
        assert_eq!(real(&rc).unwrap_err().kind(), std::io::ErrorKind::NotFound);
        symlink("/proc/self/cmdline", &rc).unwrap();
        assert!(real(&rc).is_ok());
        // Only root can change its owner.
        if chown(directory.path(), Some(4711), None).is_ok() {
            assert!(real(&rc).unwrap_err().to_string().contains("belongs to user 4711"));
        }
    }

    #[test]
    fn a_line_is_split_as_by_a_shell() {
        assert_eq!(
            words("-g  -D 'A=x y' \"-I$HOME/z\" a\\ b # c").unwrap(),
            ["-g", "-D", "A=x y", "-I<HOME>/z", "a b"]
        );
        assert_eq!(words("~/x ~ a~ ${A}b '' '$A'").unwrap(), ["<HOME>/x", "<HOME>", "a~", "<A>b", "", "$A"]);
        assert_eq!(words("# all of it").unwrap(), [""; 0]);
        for broken in ["'a", "\"a", "a\\", "${A"] {
            assert!(words(broken).is_err(), "{broken}");
        }
    }
}
