// SPDX-License-Identifier: GPL-2.0-or-later

//! `cargo xtask picture`: draws docs/session.svg, the terminal picture of the README, from docs/session.txt, the text
//! of a real session. With `--record` the commands of the text (`$ `, continued with `> `) are run again first, and
//! their output replaces the recorded one.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result};

const RECORDING: &str = "docs/session.txt";
const PICTURE: &str = "docs/session.svg";

/// In pixels.
const CHARACTER_WIDTH: f64 = 8.4;
const LINE_HEIGHT: usize = 20;
const MARGIN: usize = 20;
/// Height of the window's title bar.
const BAR: usize = 30;

/// The arguments of `cargo xtask picture`.
#[derive(clap::Args)]
pub struct Options {
    /// Run the commands of docs/session.txt again, with the programs in target/debug, and record what they print
    #[arg(long)]
    record: bool,
}

/// Writes the picture, after a new recording if that is asked for.
pub fn run(options: &Options) -> Result<ExitCode> {
    let root = crate::root();
    let file = root.join(RECORDING);
    let mut text = fs::read_to_string(&file).with_context(|| format!("reading {RECORDING}"))?;
    if options.record {
        crate::programs::build_programs(&root)?;
        text = record(&root, &text)?;
        fs::write(&file, &text).with_context(|| format!("writing {RECORDING}"))?;
    }
    fs::write(root.join(PICTURE), draw(&text)).with_context(|| format!("writing {PICTURE}"))?;
    Ok(ExitCode::SUCCESS)
}

/// The commands of the old text, each with its new output; an empty line follows each.
fn record(root: &Path, old: &str) -> Result<String> {
    let mut text = String::new();
    for command in commands(old) {
        let path = format!("{}:{}", root.join("target/debug").display(), std::env::var("PATH").unwrap_or_default());
        let output = Command::new("sh")
            .args(["-c", &format!("exec 2>&1\n{command}")])
            .env("PATH", path)
            .current_dir(root.join("examples"))
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("running {command}"))?;
        let printed = String::from_utf8_lossy(&output.stdout);
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
fn draw(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let columns = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    let width = (columns as f64 * CHARACTER_WIDTH) as usize + 2 * MARGIN;
    let height = BAR + lines.len() * LINE_HEIGHT + MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"14\">\n\
         <!-- Drawn by cargo xtask picture from session.txt. -->\n\
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
    fn the_picture_is_current() {
        let root = crate::root();
        let text = fs::read_to_string(root.join(RECORDING)).expect("the recording");
        let picture = fs::read_to_string(root.join(PICTURE)).expect("the picture");
        assert!(picture == draw(&text), "{PICTURE} is stale: run `cargo xtask picture`");
    }

    #[test]
    fn commands_of_more_lines() {
        assert_eq!(commands("$ a\n> b\nprinted\n\n$ c\nprinted $ d\n"), ["a\nb", "c"]);
    }
}
