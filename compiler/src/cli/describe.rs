// SPDX-License-Identifier: GPL-2.0-or-later

//! What is made from the definitions of the options: the manual page, and completion for shells.

use clap::CommandFactory;
use clap_complete::Shell;

use super::options::Options;

/// What a shell reads to complete `spile`'s options.
pub fn completion(shell: Shell) -> Vec<u8> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Options::command(), "spile", &mut text);
    text
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
