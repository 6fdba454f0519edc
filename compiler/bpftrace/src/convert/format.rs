// SPDX-License-Identifier: GPL-2.0-or-later

//! Format strings of printf() and time formats of strftime().

/// A format string with its quotes, as scripts write it: without length modifiers, and with `%s` for bpftrace's own
/// conversions of buffers (`%r`, `%rx`, `%rh`).
pub fn printf(format: &str) -> String {
    let mut out = String::new();
    let mut letters = format.chars().peekable();
    while let Some(letter) = letters.next() {
        out.push(letter);
        if letter != '%' {
            continue;
        }
        while let Some(flag) = letters.next_if(|letter| matches!(letter, '-' | '+' | ' ' | '#' | '.' | '*' | '0'..='9'))
        {
            out.push(flag);
        }
        while letters.next_if(|letter| matches!(letter, 'h' | 'l' | 'z' | 'j' | 't')).is_some() {}
        match letters.next() {
            Some('r') => {
                out.push('s');
                letters.next_if(|letter| matches!(letter, 'x' | 'h'));
            }
            Some(conversion) => out.push(conversion),
            None => {}
        }
    }
    out
}

/// The letter of each conversion of a format string, without `%%`; `*` for a width or precision that is a value too.
pub fn conversions(format: &str) -> Vec<char> {
    let mut found = Vec::new();
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            continue;
        }
        for letter in letters.by_ref() {
            match letter {
                '*' => found.push('*'),
                '%' => break,
                _ if letter.is_ascii_alphabetic() && !matches!(letter, 'h' | 'l' | 'z' | 'j' | 't') => {
                    found.push(letter);
                    break;
                }
                _ => {}
            }
        }
    }
    found
}

/// Stands for the place of the day with two digits.
const DAY: usize = usize::MAX;

/// The time format, with its quotes, as an expression of a script; `seconds` since 1970. `None` for a conversion that
/// ctime() does not print.
pub fn time(format: &str, seconds: &str) -> Option<String> {
    let format = format.trim_matches('"');
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            text.push(letter);
            continue;
        }
        // "Wed Jun 30 21:49:08 1993"
        let (start, length) = match letters.next()? {
            '%' => {
                text.push('%');
                continue;
            }
            'a' => (0, 3),
            'b' | 'h' => (4, 3),
            'e' => (8, 2),
            'd' => (DAY, 2),
            'H' => (11, 2),
            'M' => (14, 2),
            'S' => (17, 2),
            'T' => (11, 8),
            'R' => (11, 5),
            'Y' => (20, 4),
            'c' => (0, 24),
            _ => return None,
        };
        if !text.is_empty() {
            pieces.push(format!("\"{}\"", std::mem::take(&mut text)));
        }
        pieces.push(match start {
            // With a zero in front, where ctime() has a blank.
            DAY => format!("sprintf(\"%02d\", strtol(substr(tz_ctime({seconds}), 8, 2), 10))"),
            _ => format!("substr(tz_ctime({seconds}), {start}, {length})"),
        });
    }
    if !text.is_empty() || pieces.is_empty() {
        pieces.push(format!("\"{text}\""));
    }
    Some(join_adjacent(pieces).join(" . "))
}

/// Hours, minutes and seconds with colons between them are one part of ctime()'s text.
fn join_adjacent(pieces: Vec<String>) -> Vec<String> {
    let is = |piece: &str, start: u32| piece.starts_with("substr(") && piece.ends_with(&format!(", {start}, 2)"));
    match pieces.iter().position(|piece| is(piece, 11)) {
        Some(at) => match pieces.get(at..at + 5) {
            Some([hours, first, minutes, second, seconds])
                if is(minutes, 14) && is(seconds, 17) && [first, second].iter().all(|text| *text == "\":\"") =>
            {
                let whole = hours.replace(", 11, 2)", ", 11, 8)");
                let before = pieces.get(..at).unwrap_or_default();
                let after = pieces.get(at + 5..).unwrap_or_default();
                before.iter().cloned().chain([whole]).chain(after.iter().cloned()).collect()
            }
            _ => pieces,
        },
        None => pieces,
    }
}
