// SPDX-License-Identifier: GPL-2.0-or-later

//! The command of a session, `-c`: which program it starts.

/// The word of a shell's command that names the first program it runs, without quotes: not an assignment before it, not
/// `exec`. None: the command has no such word.
pub fn program_word(command: &str) -> Option<String> {
    let mut words = quoted_words(command).into_iter();
    while let Some(word) = words.next() {
        if word.trim_start_matches(|letter: char| letter.is_ascii_digit()).starts_with(REDIRECTIONS) {
            words.next();
        } else if !is_assignment(&word) && !NO_PROGRAMS.contains(&word.as_str()) {
            // What a shell would refuse is taken as it is written: the shell will say so.
            let plain = shell_words::split(&word).ok().and_then(|plain| plain.into_iter().next());
            return Some(plain.unwrap_or(word));
        }
    }
    None
}

const REDIRECTIONS: [char; 2] = ['<', '>'];
/// Words before the one that names a program.
const NO_PROGRAMS: [&str; 6] = ["exec", "!", "{", "(", ";", "&"];

/// The words of a command with their quotes; operators, and redirections with their numbers, are words of their own.
fn quoted_words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    // The letter before was a backslash; an operator.
    let (mut escaped, mut behind_operator) = (false, false);
    for letter in command.chars() {
        let is_plain = quote.is_none() && !escaped;
        let is_operator = is_plain && "<>;&|()".contains(letter);
        let last = words.last().map(String::as_str).unwrap_or_default();
        let is_number = !last.is_empty() && last.bytes().all(|digit| digit.is_ascii_digit());
        let redirects = matches!(letter, '<' | '>');
        let continues = if is_operator {
            behind_operator && last.ends_with(REDIRECTIONS) || redirects && is_number
        } else {
            !behind_operator
        };
        if !continues || is_plain && letter.is_whitespace() {
            words.push(String::new());
        }
        match (letter, quote) {
            _ if escaped => {}
            ('\'' | '"', None) => quote = Some(letter),
            (_, Some(open)) if open == letter => quote = None,
            _ => {}
        }
        escaped = letter == '\\' && !escaped && quote != Some('\'');
        behind_operator = is_operator;
        if let Some(last) = words.last_mut().filter(|_| !(is_plain && letter.is_whitespace())) {
            last.push(letter);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name.chars().all(|next| next.is_ascii_alphanumeric() || next == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_of_a_command() {
        for (command, program) in [
            ("./a b", Some("./a")),
            ("'./my program' b", Some("./my program")),
            ("\"./a\" | sort", Some("./a")),
            ("A=1 B_2='x y' ./a", Some("./a")),
            ("exec ./a; ./b", Some("./a")),
            ("./a;./b", Some("./a")),
            ("./a&", Some("./a")),
            ("2>/dev/null ./a", Some("./a")),
            (">log ./a", Some("./a")),
            ("> log 2>&1 ./a", Some("./a")),
            ("<in ./a >out", Some("./a")),
            ("'./R&D/tool' x", Some("./R&D/tool")),
            ("./R\\&D x", Some("./R&D")),
            ("( ./a )", Some("./a")),
            ("(./a)", Some("./a")),
            ("{ ./a; }", Some("./a")),
            ("! ./a", Some("./a")),
            ("./a=b", Some("./a=b")),
            ("./a 'x", Some("./a")),
            ("  ", None),
            ("A=1", None),
        ] {
            assert_eq!(program_word(command).as_deref(), program, "{command}");
        }
    }
}
