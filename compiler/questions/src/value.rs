// SPDX-License-Identifier: GPL-2.0-or-later

use serde::Deserialize;

/// The value of an option, and the value that the script gets.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A time; the script gets nanoseconds.
    Ns,
    /// A time; the script gets microseconds.
    Us,
    /// A time; the script gets whole seconds.
    Seconds,
    /// A size; the script gets bytes.
    Bytes,
    /// A number.
    Count,
    /// A port of TCP or UDP.
    Port,
    /// Text, taken as it is.
    Text,
    /// Nothing: the script gets 1.
    Flag,
}

impl Kind {
    /// The name of the value in help.
    pub fn placeholder(self) -> &'static str {
        match self {
            Kind::Ns | Kind::Us | Kind::Seconds => "TIME",
            Kind::Bytes => "SIZE",
            Kind::Count => "NUMBER",
            Kind::Port => "PORT",
            Kind::Text => "TEXT",
            Kind::Flag => "",
        }
    }

    /// What is taken, with an example.
    pub fn takes(self) -> &'static str {
        match self {
            Kind::Ns => "a time such as 500ns, 10us, 10ms or 2s",
            Kind::Us => "a time of whole microseconds, such as 500us, 10ms or 2s",
            Kind::Seconds => "a time of whole seconds, such as 1s, 10s or 5min",
            Kind::Bytes => "a size such as 512, 4k, 16M or 1G",
            Kind::Count => "a number such as 20",
            Kind::Port => "a port from 1 to 65535",
            Kind::Text => "a text that is not empty",
            Kind::Flag => "no value",
        }
    }

    /// The script's value for the user's text; None if the text is not valid for this kind.
    pub fn convert(self, given: &str) -> Option<String> {
        match self {
            Kind::Ns => time(given, 1).map(|number| number.to_string()),
            Kind::Us => time(given, 1_000).map(|number| number.to_string()),
            Kind::Seconds => time(given, 1_000_000_000).filter(|seconds| *seconds > 0).map(|number| number.to_string()),
            Kind::Bytes => size(given).map(|number| number.to_string()),
            Kind::Count => number(given).map(|number| number.to_string()),
            Kind::Port => number(given).filter(|port| (1..=65535).contains(port)).map(|number| number.to_string()),
            Kind::Text => (!given.is_empty()).then(|| given.to_string()),
            Kind::Flag => None,
        }
    }
}

/// Only decimal digits.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// The part before the first letter, and the rest.
fn split(text: &str) -> (&str, &str) {
    let at = text.find(|letter: char| letter.is_alphabetic()).unwrap_or(text.len());
    text.split_at(at)
}

/// A time in units of `unit` nanoseconds, if it is a whole number of them. Only 0 needs no unit.
fn time(text: &str, unit: u64) -> Option<u64> {
    let (digits, suffix) = split(text);
    let each: u64 = match suffix {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "" if digits == "0" => 1,
        _ => return None,
    };
    // 1.5ms: the digits behind the point are counted in the smaller unit.
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    let scale = 10_u64.checked_pow(u32::try_from(part.len()).ok()?)?;
    let behind = number(part)?.checked_mul(each)?;
    let whole = number(whole)?.checked_mul(each)?;
    let total = (behind.is_multiple_of(scale)).then(|| whole.checked_add(behind / scale))??;
    total.is_multiple_of(unit).then(|| total / unit)
}

fn size(text: &str) -> Option<u64> {
    let (digits, suffix) = split(text);
    let shift = match suffix {
        "" | "B" => 0,
        "k" | "K" | "kB" | "KiB" => 10,
        "M" | "MB" | "MiB" => 20,
        "G" | "GB" | "GiB" => 30,
        _ => return None,
    };
    number(digits)?.checked_mul(1 << shift).filter(|bytes| i64::try_from(*bytes).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_users_write_is_what_scripts_get() {
        for (kind, given, wanted) in [
            (Kind::Us, "10ms", "10000"),
            (Kind::Us, "1.5ms", "1500"),
            (Kind::Us, "2s", "2000000"),
            (Kind::Us, "0", "0"),
            (Kind::Ns, "500ns", "500"),
            (Kind::Seconds, "2min", "120"),
            (Kind::Bytes, "4k", "4096"),
            (Kind::Bytes, "512", "512"),
            (Kind::Count, "20", "20"),
            (Kind::Port, "443", "443"),
            (Kind::Text, "vfs_*", "vfs_*"),
        ] {
            assert_eq!(kind.convert(given).as_deref(), Some(wanted), "{kind:?} {given}");
        }
    }

    #[test]
    fn what_is_none() {
        for (kind, given) in [
            (Kind::Us, "10"),
            (Kind::Us, "500ns"),
            (Kind::Us, "10 ms"),
            (Kind::Us, "-1ms"),
            (Kind::Us, "fast"),
            (Kind::Us, "ms"),
            (Kind::Us, "1..5ms"),
            (Kind::Us, "99999999999999999999s"),
            (Kind::Seconds, "500ms"),
            (Kind::Seconds, "0s"),
            (Kind::Bytes, "4x"),
            (Kind::Bytes, "99999999999G"),
            (Kind::Count, "many"),
            (Kind::Count, ""),
            (Kind::Port, "0"),
            (Kind::Port, "65536"),
            (Kind::Text, ""),
        ] {
            assert_eq!(kind.convert(given), None, "{kind:?} {given}");
        }
    }
}
