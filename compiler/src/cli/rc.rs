// SPDX-License-Identifier: GPL-2.0-or-later

//! Options from the file `rc`: of `$SYSTEMTAP_DIR`, or of `.systemtap` at home.
//!
//! Its lines are split into words as a shell does, with quotes, `\`, `#` comments, `$NAME` and `~`, and stand before the
//! words of the command line.

use std::ffi::OsString;
use std::path::PathBuf;

/// The file, whether it is there or not.
pub fn path() -> Option<PathBuf> {
    let directory = std::env::var_os("SYSTEMTAP_DIR").map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".systemtap"));
    Some(directory.or_else(home)?.join("rc"))
}

/// The words of a command line with those of the file put in front, behind the program's name; the error names the file.
pub fn with_words(mut arguments: Vec<OsString>) -> Result<Vec<OsString>, String> {
    let Some(path) = path() else { return Ok(arguments) };
    let text = match std::fs::read(&path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error)
            if error.kind() == std::io::ErrorKind::NotFound || error.kind() == std::io::ErrorKind::NotADirectory =>
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

/// The words of a line. `variable` gives the value of `$NAME`. The error says what is not finished.
///
/// The crate `shell-words` knows neither variables nor `~`, which rc files use.
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
