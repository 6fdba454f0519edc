// SPDX-License-Identifier: GPL-2.0-or-later

//! `cargo xtask picture`: draws docs/NAME.svg, the terminal pictures of the documentation, from docs/pictures/NAME.txt, the
//! text of real sessions. With `--record` that text is made again first: by docs/pictures/NAME.sh, where there is one, else
//! by running the commands of the text (`$ `, continued with `> `), whose output replaces the recorded one.
//! `--check` compares what commands print instead. docs/pictures/NAME.png.sh makes docs/NAME.png.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result};

const RECORDINGS: &str = "docs/pictures";
const PICTURES: &str = "docs";

/// In pixels.
const CHARACTER_WIDTH: f64 = 8.4;
const LINE_HEIGHT: usize = 20;
const MARGIN: usize = 20;
/// Height of the window's title bar.
const BAR: usize = 30;

/// The arguments of `cargo xtask picture`.
#[derive(clap::Args)]
pub struct Options {
    /// Only these, such as session; all by default
    names: Vec<String>,
    /// Make the texts of docs/pictures again, with the programs in target/debug; pictures of the screen need tmux, nvim and chromium
    #[arg(long)]
    record: bool,
    /// Only compare: what commands print now is what the pictures show, but for those of sessions. Builds and changes nothing
    #[arg(long, conflicts_with = "record")]
    check: bool,
}

/// Writes the pictures, after new recordings if that is asked for.
pub fn run(options: &Options) -> Result<ExitCode> {
    let root = crate::root();
    if options.record {
        crate::programs::build_programs(&root)?;
    }
    let mut stale = false;
    for name in names(&root)?.into_iter().filter(|name| options.names.is_empty() || options.names.contains(name)) {
        let file = root.join(RECORDINGS).join(format!("{name}.txt"));
        let mut text = read(&file)?;
        let script = file.with_extension("sh");
        if options.check {
            if script.exists() || text.contains(" --guest ") {
                println!("{name}: not compared, as a session prints something else each time");
                continue;
            }
            let same = record(&root, &text)? == text;
            println!("{name}: {}", if same { "as it is printed now" } else { "STALE" });
            stale |= !same;
            continue;
        }
        if options.record {
            text =
                if script.exists() { shell(&root, &format!(". {}", script.display()))? } else { record(&root, &text)? };
            fs::write(&file, &text).with_context(|| format!("writing {}", file.display()))?;
        }
        let picture = root.join(PICTURES).join(format!("{name}.svg"));
        fs::write(&picture, draw(&name, &text)).with_context(|| format!("writing {}", picture.display()))?;
    }
    let report = root.join(RECORDINGS).join("report.png.sh");
    if options.record && (options.names.is_empty() || options.names.iter().any(|name| name == "report")) {
        shell(&root, &format!(". {}", report.display()))?;
    }
    Ok(ExitCode::from(u8::from(stale)))
}

fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))
}

/// The recorded texts, sorted.
fn names(root: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root.join(RECORDINGS)).with_context(|| format!("reading {RECORDINGS}"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        names.extend(name.strip_suffix(".txt").map(str::to_string));
    }
    names.sort();
    Ok(names)
}

/// What a command prints, errors included, with the programs in target/debug, in examples/.
fn shell(root: &Path, command: &str) -> Result<String> {
    let path = format!("{}:{}", root.join("target/debug").display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("sh")
        .args(["-c", &format!("exec 2>&1\n{command}")])
        .env("PATH", path)
        .env("ROOT", root)
        .current_dir(root.join("examples"))
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("running {command}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The commands of the old text, each with its new output; an empty line follows each.
fn record(root: &Path, old: &str) -> Result<String> {
    let mut text = String::new();
    for command in commands(old) {
        let printed = shell(root, &command)?;
        // That the running kernel is not installed here is nobody else's business.
        let printed: Vec<&str> = printed.lines().filter(|line| !line.starts_with("NOTE: kernel ")).collect();
        let printed = printed.join("\n");
        write!(text, "$ {}\n{}\n\n", command.replace('\n', "\n> "), printed.trim_end())?;
    }
    Ok(text.trim_end().to_string() + "\n")
}

/// The commands, without prompts. Lines of one command are joined by newlines.
fn commands(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in text.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            found.push(command.to_string());
        } else if let (Some(more), Some(last)) = (line.strip_prefix("> "), found.last_mut()) {
            last.push('\n');
            last.push_str(more);
        }
    }
    found
}

/// The text as an SVG image of a terminal; commands are brighter than their output.
fn draw(name: &str, text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let columns = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    let width = (columns as f64 * CHARACTER_WIDTH) as usize + 2 * MARGIN;
    let height = BAR + lines.len() * LINE_HEIGHT + MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"14\">\n\
         <!-- Drawn by cargo xtask picture from pictures/{name}.txt. -->\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#1e2229\"/>\n"
    );
    for (index, colour) in ["#e06c75", "#e5c07b", "#98c379"].iter().enumerate() {
        svg += &format!("<circle cx=\"{}\" cy=\"16\" r=\"6\" fill=\"{colour}\"/>\n", MARGIN + index * 20);
    }
    for (index, line) in lines.iter().enumerate() {
        let y = BAR + (index + 1) * LINE_HEIGHT - 5;
        let command = ["$ ", "> "].into_iter().find_map(|prompt| Some((prompt, line.strip_prefix(prompt)?)));
        let text = match command {
            Some((prompt, command)) => format!(
                "<tspan fill=\"#98c379\">{}</tspan><tspan fill=\"#ffffff\">{}</tspan>",
                escape(prompt),
                escape(command)
            ),
            None => escape(line),
        };
        if !line.is_empty() {
            svg += &format!("<text x=\"{MARGIN}\" y=\"{y}\" fill=\"#abb2bf\" xml:space=\"preserve\">{text}</text>\n");
        }
    }
    svg + "</svg>\n"
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pictures_are_current() {
        let root = crate::root();
        let names = names(&root).expect("the recordings");
        assert!(names.len() >= 7, "{names:?}");
        for name in names {
            let text = read(&root.join(RECORDINGS).join(format!("{name}.txt"))).expect("the recording");
            let picture = read(&root.join(PICTURES).join(format!("{name}.svg"))).expect("the picture");
            assert!(picture == draw(&name, &text), "{name}.svg is stale: run `cargo xtask picture`");
        }
    }

    #[test]
    fn commands_of_more_lines() {
        assert_eq!(commands("$ a\n> b\nprinted\n\n$ c\nprinted $ d\n"), ["a\nb", "c"]);
    }
}
