// SPDX-License-Identifier: GPL-2.0-or-later

//! Hostile scripts written by hand: of kinds that the generator does not make. A file of scripts has one after each line
//!
//!     ---- NAME [disturbance=N] [OPTION...]
//!
//! with the number of a disturbance of `driver.sh` (none without it) and compiler options.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::called;
use super::run::{DISTURBANCES, Round};
use super::script::Script;

const MARK: &str = "---- ";

/// The scripts of all files `*.scripts` of a directory, those with the same disturbance in rounds of at most `beside`.
pub fn rounds(directory: &Path, wanted: &str, called: &[String], beside: usize) -> Result<Vec<Round>> {
    let entries = fs::read_dir(directory).with_context(|| format!("reading {}", directory.display()))?;
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "scripts"));
    files.sort();
    let mut scripts = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        let parsed = parse(&text, scripts.len() as u64).with_context(|| file.display().to_string())?;
        scripts.extend(parsed.into_iter().filter(|script| script.declarations[0].contains(wanted)));
    }
    ensure!(!scripts.is_empty(), "{}: there is no such script", directory.display());
    for script in &mut scripts {
        script.declarations[0] = called::filled(&script.declarations[0], called);
    }
    let of = |number| scripts.iter().filter(move |script: &&Script| script.seed % DISTURBANCES == number).cloned();
    let rounds = (0..DISTURBANCES).flat_map(|number| {
        let scripts: Vec<Script> = of(number).collect();
        scripts.chunks(beside).map(<[Script]>::to_vec).collect::<Vec<_>>()
    });
    Ok(rounds.collect())
}

/// The scripts of a file. The seed of each is its number, and says which disturbance it has.
fn parse(text: &str, first: u64) -> Result<Vec<Script>> {
    let mut scripts: Vec<Script> = Vec::new();
    for line in text.lines() {
        if let Some(head) = line.strip_prefix(MARK) {
            let mut words = head.split_whitespace();
            let name = words.next().context("a script without a name")?;
            let mut options = vec!["-DMAXERRORS=1000000000".to_string(), "-DMAXSKIPPED=1000000000".to_string()];
            let mut disturbance = 0;
            for word in words {
                match word.strip_prefix("disturbance=") {
                    Some(number) => disturbance = number.parse().with_context(|| line.to_string())?,
                    None => options.push(word.to_string()),
                }
            }
            ensure!(disturbance < DISTURBANCES, "{line}: the last one is {}", DISTURBANCES - 1);
            let seed = (first + scripts.len() as u64) * DISTURBANCES + disturbance;
            scripts.push(Script { seed, options, declarations: vec![format!("# {name}\n")], probes: vec![] });
        } else if let Some(script) = scripts.last_mut() {
            script.declarations[0].push_str(line);
            script.declarations[0].push('\n');
        }
    }
    Ok(scripts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_of_a_file_with_options_and_disturbance() {
        let scripts = parse("about\n---- one\nprobe begin {}\n---- two disturbance=4 -DMAXACTION=7\n", 3).unwrap();
        let seen: Vec<_> = scripts.iter().map(|script| (script.seed, script.options.len())).collect();
        assert_eq!(seen, [(3 * DISTURBANCES, 2), (4 * DISTURBANCES + 4, 3)]);
        assert_eq!(
            scripts[0].text(),
            "# seed 36, -DMAXERRORS=1000000000 -DMAXSKIPPED=1000000000\n# one\nprobe begin {}\n\n"
        );
        assert!(parse("---- late disturbance=12", 0).is_err());
    }
}
