// SPDX-License-Identifier: GPL-2.0-or-later

//! Compiles modules on the host, runs all of them in one guest, and compares.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use spile_guest::{Guest, Streams};

use super::interpret::{MAX_NESTING, apart};
use super::tree::{GlobalKind, HandlerKind, InitialValue, Value};
use super::{Subject, write};
use crate::parallel;
use crate::place::Place;

/// Programs with the same limits, with their numbers in it.
pub struct Module<'a> {
    /// The programs, each with its number in the module.
    pub programs: Vec<(usize, &'a Subject)>,
}

/// The outcome of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Prints the expected output.
    Same,
    Prints(Vec<u8>),
    /// Its module does not compile, load or end properly; with the messages.
    Fails(String),
}

impl Outcome {
    /// The cause may be another program of the module.
    pub fn is_of_module(&self) -> bool {
        matches!(self, Outcome::Fails(_))
    }

    /// Or it needs more kernel stack than allowed.
    pub fn is_right(&self) -> bool {
        match self {
            Outcome::Same => true,
            Outcome::Fails(message) => message.starts_with("error[E0500]"),
            Outcome::Prints(_) => false,
        }
    }
}

impl<'a> Module<'a> {
    /// A module of these programs.
    pub fn new(programs: Vec<(usize, &'a Subject)>) -> Module<'a> {
        Module { programs }
    }

    /// NAME=VALUE of the globals that are set by this means.
    fn given(&self, by: InitialValue) -> Vec<String> {
        let mut given = Vec::new();
        for (number, subject) in &self.programs {
            for (index, global) in subject.program.globals.iter().enumerate() {
                if let GlobalKind::Scalar { initial: Some(initial), given: own, .. } = &global.kind
                    && *own == by
                {
                    let value = match initial {
                        Value::Long(number) => number.to_string(),
                        Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
                    };
                    given.push(format!("{}={value}", write::global_name(*number, index)));
                }
            }
        }
        given
    }

    fn has_events(&self) -> bool {
        self.programs
            .iter()
            .any(|(_, subject)| subject.program.handlers.iter().any(|handler| handler.when == HandlerKind::Event))
    }

    /// The compiler's messages, if it does not compile.
    fn compile(&self, place: &Place, spile: &Path, directory: &Path, name: &str) -> Result<Option<String>> {
        let programs: Vec<_> = self.programs.iter().map(|(number, subject)| (*number, &subject.program)).collect();
        fs::write(directory.join(format!("{name}.stp")), write::script(&programs))?;
        let limits = self.programs[0].1.limits;
        let mut command = place.command(spile, directory);
        command.args(["-r", &place.kernel.release, "-p4", "-m", name, "-DSTP_NO_OVERLOAD", "-DMAXACTION=1000000"]);
        command
            .arg(format!("-DMAXNESTING={MAX_NESTING}"))
            .arg(format!("-DMAXSTRINGLEN={}", limits.string_bytes))
            .arg(format!("-DMAXMAPENTRIES={}", limits.map_entries));
        for given in self.given(InitialValue::ToCompiler) {
            command.arg("-G").arg(given);
        }
        let output = command.arg(format!("{name}.stp")).output().context("running spile")?;
        if output.status.success() {
            return Ok(None);
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        // After the warnings, of which there are many.
        Ok(Some(stderr.find("error").map_or(&*stderr, |at| &stderr[at..]).to_string()))
    }

    /// The shell command that runs it.
    fn command(&self, name: &str) -> String {
        let given: Vec<String> = self.given(InitialValue::ToLoader).iter().map(|given| format!("'{given}'")).collect();
        let events = if self.has_events() { " -c 'sh /root/events'" } else { "" };
        format!("spilerun {name}.ko{events} {}", given.join(" "))
    }

    fn judge(&self, printed: &[u8], stderr: &str, status: &str) -> Vec<Outcome> {
        let parts = apart(printed);
        let wrong =
            status.trim() != "0" || stderr.lines().any(|line| line.starts_with("ERROR") || line.starts_with("WARNING"));
        let one = |(number, subject): &(usize, &Subject)| {
            let actual = parts.get(number).map(Vec::as_slice).unwrap_or_default();
            if wrong {
                Outcome::Fails(format!("exit status {}\n{stderr}{}", status.trim(), String::from_utf8_lossy(actual)))
            } else if agree(&subject.expected, actual) {
                Outcome::Same
            } else {
                Outcome::Prints(actual.to_vec())
            }
        };
        self.programs.iter().map(one).collect()
    }
}

/// Compares line by line; a variance, marked by `~`, is only as exact as integer arithmetic.
fn agree(expected: &[u8], actual: &[u8]) -> bool {
    let lines =
        |text: &[u8]| -> Vec<Vec<u8>> { text.trim_ascii().split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect() };
    let (expected, actual) = (lines(expected), lines(actual));
    expected.len() == actual.len()
        && expected.iter().zip(&actual).all(|(expected, actual)| {
            expected == actual
                || match (variance(expected), variance(actual)) {
                    (Some(expected), Some(actual)) => expected.abs_diff(actual) <= 2 + expected.unsigned_abs() / 64,
                    _ => false,
                }
        })
}

fn variance(line: &[u8]) -> Option<i64> {
    std::str::from_utf8(line.strip_prefix(b"~")?.strip_suffix(b"~")?).ok()?.parse().ok()
}

/// The outcomes of the modules' programs.
pub fn run(place: &Place, modules: &[Module]) -> Result<Vec<Vec<Outcome>>> {
    let directory = super::directory().join("modules");
    super::fresh(&directory)?;
    let spile = place.spile()?;
    let compiled = compile_all(place, &spile, &directory, modules)?;
    let mut outcomes: Vec<Option<Vec<Outcome>>> = modules
        .iter()
        .zip(compiled)
        .map(|(module, error)| error.map(|error| vec![Outcome::Fails(error); module.programs.len()]))
        .collect();
    // If a guest died, the first module without a result was the cause.
    while let Some(first) = outcomes.iter().position(Option::is_none) {
        let open: Vec<usize> = (first..modules.len()).filter(|index| outcomes[*index].is_none()).collect();
        let (files, console) = one_guest(place, &directory, modules, &open)?;
        for index in open {
            let part = |part: &str| files.get(&format!("{index}.{part}")).cloned();
            let Some(status) = part("status") else {
                outcomes[index] =
                    Some(vec![Outcome::Fails(format!("the guest died\n{console}")); modules[index].programs.len()]);
                break;
            };
            let text = |bytes: Option<Vec<u8>>| String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned();
            outcomes[index] = Some(modules[index].judge(
                &part("stdout").unwrap_or_default(),
                &text(part("stderr")),
                &text(Some(status)),
            ));
        }
    }
    Ok(outcomes.into_iter().flatten().collect())
}

/// Asks the compiler what pp() is in an event.
pub fn resolve_event(place: &Place) -> Result<()> {
    let mut command = place.command(&place.spile()?, &crate::root());
    let output = command.args(["-r", &place.kernel.release, "-l", write::EVENT]).output().context("running spile")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let point = text
        .lines()
        .next()
        .with_context(|| format!("spile -l does not find the event:\n{}", String::from_utf8_lossy(&output.stderr)))?;
    write::set_resolved_event(point.to_string());
    Ok(())
}

fn name_of(index: usize) -> String {
    format!("model_{index}")
}

/// The compiler's messages for those that do not compile.
fn compile_all(place: &Place, spile: &Path, directory: &Path, modules: &[Module]) -> Result<Vec<Option<String>>> {
    let results =
        parallel::map(modules.len(), |index| modules[index].compile(place, spile, directory, &name_of(index)));
    results.into_iter().collect()
}

/// The results of the modules from a guest, and the end of its console.
fn one_guest(
    place: &Place,
    directory: &Path,
    modules: &[Module],
    open: &[usize],
) -> Result<(BTreeMap<String, Vec<u8>>, String)> {
    let mut guest = Guest::new(place.kernel.clone());
    guest.program(crate::root().join("target/debug/spilerun"), "/usr/bin/spilerun")?;
    // A process on this CPU or one that changes its name.
    let events = modules[open[0]].programs[0].1.limits.events;
    let events: String =
        (0..events).map(|event| format!("taskset {} sh -c 'echo x >/proc/self/comm'\n", 1 + event % 3 % 2)).collect();
    guest.write("/root/events", events, 0o644);
    let mut script = String::from("cd /root\n");
    for index in open {
        let name = name_of(*index);
        let module = directory.join(format!("{name}.ko"));
        guest.copy(&module, format!("/root/{name}.ko"))?;
        script.push_str(&format!(
            "timeout -s INT 60 {} >/tmp/out 2>/tmp/err </dev/null; echo $? >/tmp/status\n\
             give /tmp/out {index}.stdout; give /tmp/err {index}.stderr; give /tmp/status {index}.status; rm /root/{name}.ko\n",
            modules[*index].command(&name)
        ));
    }
    guest
        .memory_mib(2048)
        .script(&script)
        .time_limit(Duration::from_secs(60 + 20 * open.len() as u64) * place.slowness() * crate::measure::busy());
    let outcome = guest.start(Streams::discard())?.wait()?;
    let console: Vec<&str> = outcome.console.lines().collect();
    let console = console[console.len().saturating_sub(40)..].join("\n");
    Ok((outcome.files, console))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variance_need_not_be_exact() {
        assert!(agree(b"a\n~1000~\n\n", b"a\n~1003~\n"));
        assert!(!agree(b"a\n~1000~\n", b"a\n~1300~\n"));
        assert!(!agree(b"a\n1000\n", b"a\n1003\n"));
        assert!(!agree(b"a\n", b"a\nb\n"));
    }
}
