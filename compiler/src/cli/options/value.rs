// SPDX-License-Identifier: GPL-2.0-or-later

//! Validation of options' values. Each function returns the value unchanged, or the error.

use spile_syntax::LANGUAGE_VERSION;

/// `NAME=VALUE`, where the name is an identifier.
pub(super) fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("a `=` and a value are missing")?;
    let starts = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    if !starts || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Err(format!("{name:?} is not a valid name: letters, digits and _, not beginning with a digit"));
    }
    Ok((name.to_string(), value.to_string()))
}

/// Arguments of make, except targets, which belong to the build.
pub(super) fn make_word(text: &str) -> Result<String, String> {
    match text.starts_with('-') {
        true => Ok(text.to_string()),
        false => assignment(text).map(|_| text.to_string()),
    }
}

/// At most five digits.
pub(super) fn pass_digits(text: &str) -> Result<String, String> {
    let fits = !text.is_empty() && text.len() <= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    fits.then(|| text.to_string()).ok_or("at most five digits, one for each pass: --vp 02".to_string())
}

/// A version up to the one implemented here.
pub(super) fn language_version(text: &str) -> Result<String, String> {
    let parts = |text: &str| text.split('.').map(|part| part.parse::<u32>().ok()).collect::<Option<Vec<u32>>>();
    match (parts(text), parts(LANGUAGE_VERSION)) {
        (None, _) => Err("numbers with dots between them: --compatible=4.8".into()),
        (Some(asked), Some(spoken)) if asked > spoken => {
            Err(format!("the supported language is that of SystemTap {LANGUAGE_VERSION}"))
        }
        _ => Ok(text.to_string()),
    }
}

/// Checks the argument of `--download-debuginfo`, as stap takes it.
pub fn download(text: &str) -> Result<String, String> {
    match matches!(text, "yes" | "no" | "ask") || text.parse::<u32>().is_ok_and(|seconds| seconds > 0) {
        true => Ok(text.to_string()),
        false => Err("yes, no, ask or a number of seconds".into()),
    }
}

/// Letters of a module's name, at most: MODULE_NAME_LEN of the kernel, less its end.
pub const LONGEST_NAME: usize = 55;

/// Checks a module's name: letters, digits and `_`, not too long for the kernel.
pub fn module_name(name: &str) -> Result<String, String> {
    let name = name.strip_suffix(".ko").unwrap_or(name);
    let fits = !name.is_empty()
        && name.len() <= LONGEST_NAME
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let starts = name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    if fits && starts {
        Ok(name.to_string())
    } else {
        Err(format!("-m {name}: a module's name has at most 55 letters, digits and _, and does not begin with a digit"))
    }
}
