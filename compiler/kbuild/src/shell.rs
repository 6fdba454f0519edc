// SPDX-License-Identifier: GPL-2.0-or-later

//! Splits commands as recorded by Kbuild into words.
//!
//! A `.cmd` file has the commands of one target as make would run them, by a shell. The result is run without a shell;
//! a command that needs more of it than quotes and `;` gives None, and the module is then built by Kbuild.
//!
//! The crate `shell-words` would take a redirection or a pipe for words, and does not support `;`.

/// The sequence of programs, each as its words. `text` is what follows `:=` in a `.cmd` file.
pub(super) fn commands(text: &str) -> Option<Vec<Vec<String>>> {
    // make's own quoting (make-cmd in scripts/Kbuild.include).
    let text = text.trim().replace("$$", "\u{0}").replace("$(pound)", "#");
    if text.contains('$') {
        return None;
    }
    let text = text.replace('\u{0}', "$");
    let mut all = Vec::new();
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => {
                let inner = word.get_or_insert_default();
                loop {
                    match characters.next()? {
                        '\'' => break,
                        c => inner.push(c),
                    }
                }
            }
            '"' => {
                let inner = word.get_or_insert_default();
                loop {
                    match characters.next()? {
                        '"' => break,
                        '$' | '`' => return None,
                        '\\' => match characters.next()? {
                            c @ ('"' | '\\' | '$' | '`') => inner.push(c),
                            c => inner.extend(['\\', c]),
                        },
                        c => inner.push(c),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(characters.next()?),
            ';' => {
                words.extend(word.take());
                all.push(std::mem::take(&mut words));
            }
            '&' if characters.next_if_eq(&'&').is_some() => {
                words.extend(word.take());
                all.push(std::mem::take(&mut words));
            }
            '&' | '|' | '<' | '>' | '(' | ')' | '$' | '`' | '*' | '?' | '[' | '{' | '!' | '\n' => return None,
            '#' | '~' if word.is_none() => return None,
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    all.push(words);
    all.retain(|words| !words.is_empty());
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_several_commands() {
        let text = r#" gcc-12 -DKBUILD_MODNAME='"x"' -D"A(b)=\#b" "a \"b\" \n" -c -o /w/x.o /w/x.c   ; ./objtool --orc /w/x.o"#;
        let words = commands(text).unwrap();
        assert_eq!(words.len(), 2);
        assert_eq!(
            words[0],
            ["gcc-12", "-DKBUILD_MODNAME=\"x\"", "-DA(b)=\\#b", "a \"b\" \\n", "-c", "-o", "/w/x.o", "/w/x.c"]
        );
        assert_eq!(words[1], ["./objtool", "--orc", "/w/x.o"]);
        assert_eq!(commands("ld -r -o a b;  true").unwrap(), [vec!["ld", "-r", "-o", "a", "b"], vec!["true"]]);
        assert_eq!(commands("a '' b").unwrap(), [["a", "", "b"]]);
    }

    #[test]
    fn make_quotes_dollar_and_hash() {
        assert_eq!(commands("a '$$x' b$(pound)c").unwrap(), [["a", "$x", "b#c"]]);
        assert_eq!(commands("a $(CC)"), None);
    }

    #[test]
    fn what_needs_a_shell_is_left_to_one() {
        for text in
            ["a | b", "a > b", "a $$(b)", "a `b`", "a *.o", "{ a; }", "a 'b", "a \"b", "! a", "(a)", "a & b", "a\nb"]
        {
            assert_eq!(commands(text), None, "{text}");
        }
    }
}
