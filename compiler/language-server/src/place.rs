// SPDX-License-Identifier: GPL-2.0-or-later

//! Names of documents: URIs of files, and those of library files that are part of the program, `spile:/tapset/task.stp`,
//! whose text the client asks for with the request `spile/text`.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use lsp_types::Uri;

/// Before the name of a file of the program.
pub const SCHEME: &str = "spile:/";

/// The URI of a file; None: the path is not absolute.
pub fn uri_of(path: &Path) -> Option<Uri> {
    let text = path.to_str().filter(|text| text.starts_with('/'))?;
    Uri::from_str(&format!("file://{}", escaped(text))).ok()
}

/// The URI of a library file by its name in messages: a path, or `tapset/NAME` of one in the program.
pub fn uri_of_library(name: &str) -> Option<Uri> {
    match uri_of(Path::new(name)) {
        Some(uri) => Some(uri),
        None => Uri::from_str(&format!("{SCHEME}{}", escaped(name))).ok(),
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// A URI's text with its escapes resolved.
fn plain(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match hex.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The path of a file's URI; None of another kind of document.
pub fn path_of(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let path = rest.get(rest.find('/')?..)?;
    Some(PathBuf::from(plain(path)))
}

/// The name of a library file of the program; None of another document.
pub fn library_file(uri: &str) -> Option<String> {
    uri.strip_prefix(SCHEME).map(|name| plain(name.trim_start_matches('/')))
}

/// The name of a document in messages.
pub fn name_of(uri: &str) -> String {
    path_of(uri).map_or_else(|| uri.to_string(), |path| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let uri = uri_of(Path::new("/a b/ü%.stp")).unwrap();
        assert_eq!(uri.as_str(), "file:///a%20b/%C3%BC%25.stp");
        assert_eq!(path_of(uri.as_str()), Some("/a b/ü%.stp".into()));
        assert_eq!(path_of("file://host/x"), Some("/x".into()));
        assert_eq!((path_of("untitled:1"), path_of("file://")), (None, None));
        assert_eq!(name_of("untitled:1"), "untitled:1");
        assert_eq!(path_of("file:///a%2"), Some("/a%2".into()));
        let library = uri_of_library("tapset/task.stp").unwrap();
        assert_eq!(library_file(library.as_str()).as_deref(), Some("tapset/task.stp"));
        assert!(uri_of(Path::new("x")).is_none());
    }
}
