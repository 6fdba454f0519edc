// SPDX-License-Identifier: GPL-2.0-or-later

//! The documentation page of each code, as `--explain CODE` prints it.
//!
//! A page is `pages/CODE.md`: a headline, what the message means and why, a wrong script and a corrected one.

use include_dir::{Dir, include_dir};

static PAGES: Dir = include_dir!("$CARGO_MANIFEST_DIR/src/diagnostic/pages");

/// The page of a code, in upper or lower case: `E0101`, `e101`.
pub fn page(code: &str) -> Option<&'static str> {
    let code = code.trim().to_ascii_uppercase();
    let (letter, digits) = code.split_at_checked(1)?;
    let name = format!("{letter}{digits:0>4}.md");
    PAGES.get_file(name)?.contents_utf8()
}

/// All pages: code and text.
pub fn pages() -> impl Iterator<Item = (&'static str, &'static str)> {
    PAGES.files().filter_map(|file| Some((file.path().file_stem()?.to_str()?, file.contents_utf8()?)))
}
