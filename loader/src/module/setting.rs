// SPDX-License-Identifier: GPL-2.0-or-later

//! `GLOBAL=VALUE`: values for the script's globals, checked against the module's description of them.

use spile_abi::device::{SET_BYTES, Set};
use spile_abi::meta::{Setting, parse_number};

use crate::error::Error;

/// A value that fits its global.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Value of a number.
    Number(i64),
    /// Value of a string, without a NUL at its end.
    Text(Vec<u8>),
}

/// `-r N:URI`: the values of the tapset functions remote_id() and remote_uri().
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    /// Index of the host, from 0.
    pub number: i64,
    /// The host as given by the user.
    pub uri: String,
}

/// The library's globals for it (tapset/misc.stp).
const REMOTE_ID: &str = "_remote_id";
const REMOTE_URI: &str = "_remote_uri";

/// Settings for those that the script uses; unused ones have no global.
pub fn of_remote(remote: &Remote, settings: &[Setting]) -> Vec<(u32, Value)> {
    let mut found = Vec::new();
    for (index, setting) in settings.iter().enumerate() {
        match setting.name.as_str() {
            REMOTE_ID => found.push((index as u32, Value::Number(remote.number))),
            REMOTE_URI => {
                let most = setting.string_bytes as usize;
                found.push((index as u32, Value::Text(remote.uri.bytes().take(most).collect())));
            }
            _ => {}
        }
    }
    found
}

/// Index into the metadata's settings, and the value. Every `GLOBAL=VALUE` is checked before the module is loaded.
pub fn parse(given: &[String], settings: &[Setting]) -> Result<Vec<(u32, Value)>, Error> {
    given.iter().map(|given| parse_one(given, settings)).collect()
}

fn parse_one(given: &str, settings: &[Setting]) -> Result<(u32, Value), Error> {
    let wrong = |why: String| Error::Setting { given: given.to_string(), why };
    let (name, value) =
        given.split_once('=').ok_or_else(|| wrong("a global's value is given as NAME=VALUE".to_string()))?;
    let Some((index, setting)) = settings.iter().enumerate().find(|(_, setting)| setting.name == name) else {
        // Reserved for the library.
        let names = settings.iter().map(|setting| setting.name.as_str());
        let known: Vec<&str> = names.filter(|name| ![REMOTE_ID, REMOTE_URI].contains(name)).collect();
        return Err(wrong(match known.is_empty() {
            true => "the script has no global that can be set".to_string(),
            false => format!("no such global that can be set; there is {}", known.join(", ")),
        }));
    };
    let value = match setting.is_string() {
        true if value.len() > setting.string_bytes as usize => {
            return Err(wrong(format!(
                "longer than the {} bytes that the script was compiled for",
                setting.string_bytes
            )));
        }
        true => Value::Text(value.as_bytes().to_vec()),
        false => Value::Number(parse_number(value).ok_or_else(|| wrong(format!("{name} holds a number of 64 bits")))?),
    };
    Ok((index as u32, value))
}

/// The arguments of SPILE_SET, in order.
pub fn pieces(setting: u32, value: &Value) -> Vec<Set> {
    match value {
        Value::Number(number) => vec![piece(setting, 0, &[], *number)],
        Value::Text(text) if text.is_empty() => vec![piece(setting, 0, &[], 0)],
        Value::Text(text) => {
            let chunks = text.chunks(SET_BYTES).enumerate();
            chunks.map(|(index, chunk)| piece(setting, (index * SET_BYTES) as u32, chunk, 0)).collect()
        }
    }
}

/// `chunk` is at most SET_BYTES long.
fn piece(setting: u32, offset: u32, chunk: &[u8], number: i64) -> Set {
    let mut text = [0; SET_BYTES];
    text.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
    Set { setting, offset, bytes: chunk.len() as u32, reserved: 0, number, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Vec<Setting> {
        vec![Setting { name: "limit".into(), string_bytes: 0 }, Setting { name: "who".into(), string_bytes: 5 }]
    }

    fn parse_line(given: &str) -> Result<(u32, Value), String> {
        parse_one(given, &settings()).map_err(|error| error.to_string())
    }

    #[test]
    fn values_are_checked_against_their_globals() {
        assert_eq!(parse_line("limit=-0x10"), Ok((0, Value::Number(-16))));
        assert_eq!(parse_line("who=a=b"), Ok((1, Value::Text(b"a=b".to_vec()))));
        assert_eq!(parse_line("who="), Ok((1, Value::Text(vec![]))));
        for (given, why) in [
            ("limit", "NAME=VALUE"),
            ("limit=ten", "limit holds a number"),
            ("limit=9223372036854775808", "64 bits"),
            ("who=123456", "longer than the 5 bytes"),
            ("x=1", "there is limit, who"),
        ] {
            assert!(parse_line(given).is_err_and(|error| error.contains(why) && error.contains(given)), "{given}");
        }
    }

    #[test]
    fn long_texts_are_split() {
        let pieces = pieces(1, &Value::Text(vec![b'x'; SET_BYTES + 3]));
        let shape: Vec<(u32, u32)> = pieces.iter().map(|piece| (piece.offset, piece.bytes)).collect();
        assert_eq!(shape, [(0, SET_BYTES as u32), (SET_BYTES as u32, 3)]);
        assert_eq!(super::pieces(1, &Value::Text(vec![])).len(), 1);
    }
}
