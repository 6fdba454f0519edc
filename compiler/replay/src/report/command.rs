// SPDX-License-Identifier: GPL-2.0-or-later

//! `spile report`.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufReader, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use nix::sys::signal::Signal;
use spile_abi::escape;
use spile_abi::say::say;
use spile_base::passed_on;
use spile_base::scratch::Scratch;

use super::collect::Collected;
use super::{page, terminal};
use crate::read::{self, Ended};

const HELP: &str = "\
Shows a recording, or what a script prints, as histograms, series, tables and a flame graph

Usage: spile report [-o FILE.html] [--compare RECORDING] RECORDING
       spile report [-o FILE.html] [--compare RECORDING] [OPTIONS] SCRIPT [ARGUMENT]...

  -o FILE.html           a page for browsers, complete in itself; without it, text for the terminal
  --compare RECORDING    show what is different from this earlier recording

RECORDING is made by spile --record FILE. A SCRIPT is run with spile's OPTIONS (-c, -T, -x, --guest, ...) until it ends; ^C ends it.
";

/// The command line.
#[derive(Debug, Default)]
struct Arguments {
    output: Option<PathBuf>,
    compare: Option<PathBuf>,
    /// All others.
    rest: Vec<OsString>,
}

fn parse(words: impl Iterator<Item = OsString>) -> Result<Option<Arguments>, String> {
    let mut arguments = Arguments::default();
    let mut words = words.peekable();
    while let Some(word) = words.next() {
        let mut value = |name: &str| words.next().ok_or_else(|| format!("{name} needs a file"));
        match word.to_str() {
            Some("-h" | "--help") => return Ok(None),
            Some("-o") => arguments.output = Some(value("-o")?.into()),
            Some("--compare") => arguments.compare = Some(value("--compare")?.into()),
            Some("--") => {
                arguments.rest.push(word);
                arguments.rest.extend(words);
                break;
            }
            _ => arguments.rest.push(word),
        }
    }
    match arguments.rest.is_empty() {
        true => Err("give a recording, or a script".to_string()),
        false => Ok(Some(arguments)),
    }
}

/// The whole command; `words` follow `report`.
pub fn main(words: impl Iterator<Item = OsString>) -> ExitCode {
    let result = match parse(words) {
        Ok(None) => {
            let _ = io::stdout().write_all(HELP.as_bytes());
            return ExitCode::SUCCESS;
        }
        Ok(Some(arguments)) => report(&arguments),
        Err(message) => Err(message),
    };
    match result {
        Ok(status) => status,
        Err(message) => {
            say(&format!("spile: report: {}\n", escape::line(&message)));
            ExitCode::FAILURE
        }
    }
}

/// Whether the file is a recording.
fn is_recording(path: &OsStr) -> bool {
    let mut bytes = [0; 4];
    // A file is read twice, so a pipe is refused, and not waited for.
    let read = spile_base::read::open_regular(Path::new(path)).and_then(|(mut file, _)| file.read_exact(&mut bytes));
    read.is_ok() && crate::is_recording(&bytes)
}

/// The file of the page, opened before the script runs: the session is over when there is something to write.
struct Page<'a> {
    path: &'a Path,
    file: File,
    /// There was no file.
    is_new: bool,
    is_written: bool,
}

impl<'a> Page<'a> {
    fn open(path: &'a Path) -> Result<Page<'a>, String> {
        let is_new = path.symlink_metadata().is_err();
        let file = spile_base::read::create_for_later(path).map_err(|error| named(path, &error))?;
        Ok(Page { path, file, is_new, is_written: false })
    }

    fn write(&mut self, page: &str) -> Result<(), String> {
        self.is_written = true;
        // Devices and pipes have no length.
        if self.file.metadata().is_ok_and(|found| found.is_file()) {
            self.file.set_len(0).map_err(|error| named(self.path, &error))?;
        }
        self.file.write_all(page.as_bytes()).map_err(|error| named(self.path, &error))
    }
}

impl Drop for Page<'_> {
    fn drop(&mut self) {
        if self.is_new && !self.is_written {
            let _ = std::fs::remove_file(self.path);
        }
    }
}

fn named(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}

fn report(arguments: &Arguments) -> Result<ExitCode, String> {
    let mut output = None;
    let before = arguments.compare.as_deref().map(|path| Ok::<_, String>((path, collect(path)?))).transpose()?;
    let mut open_page = || {
        output = arguments.output.as_deref().map(Page::open).transpose()?;
        Ok::<(), String>(())
    };
    let (collected, status) = match arguments.rest.as_slice() {
        [file] if is_recording(file) => {
            let collected = collect(Path::new(file))?;
            open_page()?;
            (collected, ExitCode::SUCCESS)
        }
        [file] if !Path::new(file).exists() => {
            return Err(format!("{}: there is no such file", file.to_string_lossy()));
        }
        words => {
            open_page()?;
            run(words)?
        }
    };
    let name = before.as_ref().map(|(path, collected)| (path.to_string_lossy().into_owned(), collected));
    match &mut output {
        Some(output) => {
            let page = page::page(&collected, name.as_ref().map(|(name, before)| (name.as_str(), *before)));
            output.write(&page)?;
        }
        None => {
            let is_terminal = io::stdout().is_terminal();
            let colour = is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
            let text = terminal::text(&collected, columns(), colour);
            match io::stdout().write_all(text.as_bytes()) {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error.to_string()),
                _ => {}
            }
        }
    }
    Ok(match &collected.damage {
        Some(damage) => {
            say(&format!("spile: report: the recording is not complete: {}\n", escape::line(damage)));
            ExitCode::FAILURE
        }
        None => status,
    })
}

/// Reads a recording; what is wrong with it is part of the report, if something of it could be read.
fn collect(path: &Path) -> Result<Collected, String> {
    let named = |error: String| format!("{}: {error}", path.display());
    let (file, _) = spile_base::read::open_regular(path).map_err(|error| named(error.to_string()))?;
    let mut collected = Collected::default();
    let progress = crate::command::progress(path);
    let from: Box<dyn Read> = match &progress {
        Some(progress) => Box::new(progress.read(file)),
        None => Box::new(file),
    };
    collected.damage = match read::read(BufReader::new(from), &mut collected) {
        Ok(Ended { damaged: 1.., .. }) => Some("some of its records are damaged, and were left out".to_string()),
        Ok(_) => None,
        Err(error) if collected.about.is_empty() => return Err(named(error.to_string())),
        Err(error) => Some(error.to_string()),
    };
    Ok(collected)
}

/// The page and the text of a recording, for tests.
#[cfg(test)]
pub fn of_bytes(file: &[u8]) -> (String, String) {
    let mut collected = Collected::default();
    let _ = read::read(file, &mut collected);
    (page::page(&collected, Some(("itself", &collected))), terminal::text(&collected, 60, false))
}

/// Runs a script with a recording.
fn run(words: &[OsString]) -> Result<(Collected, ExitCode), String> {
    let directory = Scratch::new().map_err(|error| format!("making a directory for the recording: {error}"))?;
    let file = directory.path().join("recording");
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.arg("--record").arg(&file).args(words);
    // If this process is killed, the session goes on writing there.
    directory.share_with_programs(true);
    let status = passed_on::run(&mut command, &[Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]);
    directory.share_with_programs(false);
    let status = status.map_err(|error| format!("running the script: {error}"))?;
    let code = u8::try_from(status.code().unwrap_or(1)).unwrap_or(1);
    if !is_recording(file.as_os_str()) {
        return Err(format!("the script was not run: status {code}"));
    }
    Ok((collect(&file)?, ExitCode::from(code)))
}

/// Of the terminal, else of $COLUMNS, else 80.
fn columns() -> usize {
    let mut size = nix::libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the call fills in the structure.
    let asked = unsafe { nix::libc::ioctl(1, nix::libc::TIOCGWINSZ, &raw mut size) };
    if asked == 0 && size.ws_col > 0 {
        return size.ws_col.into();
    }
    std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).unwrap_or(80)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A script that is run here would be an argument of the tests' program.
    fn of_script(output: &Path) -> String {
        let rest = vec!["-e".into(), "probe begin { exit() }".into()];
        report(&Arguments { output: Some(output.into()), compare: None, rest }).unwrap_err()
    }

    #[test]
    fn a_page_is_opened_before_the_script_runs() {
        let directory = Scratch::new().unwrap();
        let message = of_script(&directory.path().join("none/page.html"));
        assert!(message.contains("none/page.html: No such file"), "{message}");
        // A script that does not run leaves the page as it was.
        let page = directory.path().join("page.html");
        assert!(of_script(&page).contains("was not run") && !page.exists());
        std::fs::write(&page, "before").unwrap();
        assert!(of_script(&page).contains("was not run"));
        assert_eq!(std::fs::read_to_string(&page).unwrap(), "before");
    }
}
