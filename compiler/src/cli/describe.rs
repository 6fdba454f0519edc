// SPDX-License-Identifier: GPL-2.0-or-later

//! What is made from the definitions of the options: the manual page, and completion for shells.

use clap::CommandFactory;
use clap_complete::Shell;
use spile_questions::{Question, Questions};

use super::options::Options;

/// What a shell reads to complete `spile`'s options.
pub fn completion(shell: Shell) -> Vec<u8> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Options::command(), "spile", &mut text);
    let questions = Questions::read().map(|questions| questions.all).unwrap_or_default();
    match shell {
        Shell::Bash => text.extend(bash(&questions).into_bytes()),
        Shell::Fish => text.extend(fish(&questions).into_bytes()),
        Shell::Zsh => {
            let names: Vec<&str> = questions.iter().map(|question| question.name.as_str()).collect();
            let script = String::from_utf8_lossy(&text).into_owned();
            let first = format!(
                "_spile() {{\n    if (( CURRENT == 3 )) && [[ $words[2] == ask ]]; then\n        compadd {}\n        return\n    fi\n",
                names.join(" ")
            );
            text = script.replacen("_spile() {\n", &first, 1).into_bytes();
        }
        _ => {}
    }
    text
}

/// `spile ask NAME --OPTION` for bash, around the function for all other words.
fn bash(questions: &[Question]) -> String {
    let names: Vec<&str> = questions.iter().map(|question| question.name.as_str()).collect();
    let mut options = String::new();
    for question in questions.iter().filter(|question| !question.options.is_empty()) {
        let words: Vec<String> = question.options.iter().map(|option| format!("--{}", option.name)).collect();
        options.push_str(&format!("            {}) own='{}' ;;\n", question.name, words.join(" ")));
    }
    format!(
        "
_spile_and_questions() {{
    local word=\"${{COMP_WORDS[COMP_CWORD]}}\" own=''
    if [ \"${{COMP_WORDS[1]}}\" != ask ] || [ \"$COMP_CWORD\" -lt 2 ]; then
        _spile \"$@\"
    elif [ \"$COMP_CWORD\" = 2 ]; then
        COMPREPLY=($(compgen -W '{}' -- \"$word\"))
    else
        case \"${{COMP_WORDS[2]}}\" in
{options}        esac
        case \"$word\" in
            -*) COMPREPLY=($(compgen -W \"$own --help --print -c -x -T -o -v --guest --format --record\" -- \"$word\")) ;;
            *) COMPREPLY=($(compgen -f -- \"$word\")) ;;
        esac
    fi
}}
complete -F _spile_and_questions -o bashdefault -o default spile
",
        names.join(" ")
    )
}

/// The names after `spile ask` for fish, with their questions.
fn fish(questions: &[Question]) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"));
    let line = |question: &Question| {
        format!(
            "complete -c spile -n 'test (count (commandline -opc)) = 2; and contains ask (commandline -opc)' -f -a {} -d {}\n",
            question.name,
            quoted(&question.question)
        )
    };
    questions.iter().map(line).collect()
}

/// The manual page, in the language of man(7).
pub fn man_page() -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    clap_mangen::Man::new(Options::command()).render(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_is_told_but_not_the_refused_ones() {
        let page = String::from_utf8(man_page().unwrap()).unwrap();
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let text = String::from_utf8(completion(shell)).unwrap();
            assert!(text.contains("suppress-handler-errors") && !text.contains("trust-servers"), "{shell}");
        }
        assert!(
            page.contains("suppress\\-handler\\-errors")
                && page.contains(".SH OPTIONS")
                && !page.contains("trust\\-servers")
        );
    }
}
