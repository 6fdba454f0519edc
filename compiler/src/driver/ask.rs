// SPDX-License-Identifier: GPL-2.0-or-later

//! What is asked of kernels without compiling: `--check`, `--resolve`, `--list-lines`.

use super::*;
use crate::cli::options::Answer;
use spile_core::check::{self, Subject};
use spile_core::elaborate::survey::survey;
use spile_core::inspect;

/// As diff(1) has it: 0 all is well, 1 it is not, 2 that could not be found out.
const TROUBLE: Failed = Failed(2);

impl Session {
    /// `--check`: the script on each kernel of `--kernel`, against the first.
    pub(super) fn check(&mut self, form: Answer) -> Result<Outcome, Failed> {
        let Some((script, arguments)) = self.options.script() else {
            self.usage("a script is missing: give a file, - or -e SCRIPT");
            return Err(TROUBLE);
        };
        // Standard input can be read once.
        let script = match script {
            Script::Stdin => {
                let file = self.read(&Script::Stdin).map_err(|_| TROUBLE)?;
                Script::Text(String::from_utf8_lossy(&self.sources.file(file).bytes).into_owned())
            }
            script => script,
        };
        let names = self.options.kernels.clone();
        if names.len() < 2 {
            self.usage("--check compares kernels: give --kernel twice or more");
            return Err(TROUBLE);
        }
        let mut subjects = Vec::new();
        for name in names {
            let progress = self.progress(&format!("looking at {name}"));
            let subject = self.subject(&name, &script, &arguments);
            drop(progress);
            subjects.push(subject.map_err(|_| TROUBLE)?);
        }
        let report = check::compare(&self.sources, &subjects);
        let lines = match form {
            Answer::Table => check::show::table(&report),
            Answer::Json => vec![check::show::json(&report)],
        };
        self.print_lines(lines.into_iter())?;
        Ok(Outcome::Done(if report.well { ExitCode::SUCCESS } else { ExitCode::FAILURE }))
    }

    fn subject(&mut self, name: &str, script: &Script, arguments: &[String]) -> Result<Subject, Failed> {
        let search = SearchOptions { sysroot: self.options.sysroot.clone(), ..SearchOptions::default() };
        let kernel = Kernel::named(name, search).map_err(|error| self.fail(&error.to_string(), &error.notes()))?;
        let kernel = self.equipped(kernel);
        // Without it everything would be gone, and that would be no answer.
        kernel.vmlinux().map_err(|error| self.fail(&error.to_string(), &error.notes()))?;
        let release = kernel.release().to_string();
        let environment = self.environment(&release, Some(&kernel), arguments.to_vec());
        let (scripts, _) = self.parse(script, &environment)?;
        let survey = {
            let mut resolver = self.resolver(Some(&kernel), &release);
            survey(&self.sources, &scripts, &self.elaborate_options(), &mut resolver)
        };
        Ok(Subject { name: name.to_string(), kernel, survey })
    }

    /// `--export-index`: the kernel, and the modules that the words name.
    pub(super) fn export_index(
        &mut self,
        file: &Path,
        kernel: Option<&Kernel>,
        release: &str,
    ) -> Result<Outcome, Failed> {
        let Some(kernel) = kernel else {
            let error = spile_debuginfo::target::TargetError::no_kernel(release);
            return Err(self.fail(&error.to_string(), &error.notes()));
        };
        let modules: Vec<String> = self.options.words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let progress = self.progress("reading debug information");
        let size = spile_debuginfo::target::export(kernel, &modules, file);
        drop(progress);
        let size = size.map_err(|error| self.fail(&error.to_string(), &error.notes()))?;
        self.print_lines(
            [format!("{}: {}, {}", file.display(), kernel.release(), spile_base::cache::size_text(size))].into_iter(),
        )
    }

    /// `--resolve`: status 1 where a point that is not optional has no site.
    pub(super) fn resolve(
        &mut self,
        form: Answer,
        scripts: &[ast::Script],
        kernel: Option<&Kernel>,
        release: &str,
    ) -> Result<Outcome, Failed> {
        let progress = self.progress("reading debug information");
        let mut resolver = self.resolver(kernel, release);
        let survey = survey(&self.sources, scripts, &self.elaborate_options(), &mut resolver);
        drop(progress);
        let all = inspect::resolve::resolved(&self.sources, &survey);
        let lines = match form {
            Answer::Table => inspect::resolve::table(&all),
            Answer::Json => vec![inspect::resolve::json(release, &all)],
        };
        self.print_lines(lines.into_iter())?;
        let missing = survey.points.iter().filter(|point| point.sites.is_empty() && !point.optional);
        let problems: Vec<Diagnostic> = missing.flat_map(|point| point.problems.clone()).collect();
        let unread = survey
            .points
            .iter()
            .flat_map(|point| &point.sites)
            .flat_map(|site| &site.targets)
            .any(|target| target.found.is_err());
        self.tell("Pass 2: analysis", &problems)?;
        Ok(Outcome::Done(if unread { ExitCode::FAILURE } else { ExitCode::SUCCESS }))
    }

    /// `--list-lines`: the lines of the functions that the probe points name.
    pub(super) fn list_lines(&mut self, kernel: Option<&Kernel>, release: &str) -> Result<Outcome, Failed> {
        let text = self.options.list_lines.join(", ");
        let file = self.sources.add("<input>", text.into_bytes(), Origin::User);
        let (points, problems) = syntax::parse_probe_points(&mut self.sources, file);
        self.tell("Pass 1: parse", &problems)?;
        if let Some(missing) = self.options.source.iter().find(|directory| !directory.is_dir()) {
            return Err(self.usage(&format!("--source {}: there is no such directory", missing.display())));
        }
        let known = kernel.map(Kernel::source_dirs).unwrap_or_default();
        let sources = inspect::lines::Sources { given: self.options.source.clone(), known };
        let mut without_text = std::collections::BTreeSet::new();
        let mut resolver = self.resolver(kernel, release);
        let (mut lines, mut problems) = (Vec::new(), Vec::new());
        for point in &points {
            match inspect::lines::listing(&point.components, point.span, &mut resolver, &sources) {
                Ok(listed) => {
                    lines.extend(listed.lines);
                    without_text.extend(listed.without_text);
                }
                Err(error) => problems.push(error.diagnostic(point.span)),
            }
        }
        self.tell("Pass 2: analysis", &problems)?;
        if lines.is_empty() {
            return Err(
                self.fail("no line of it can be probed: lists of lines are made for functions, from DWARF", &[])
            );
        }
        if !without_text.is_empty() && !self.options.no_warnings {
            let files: Vec<String> = without_text.into_iter().collect();
            let looked: Vec<String> = sources
                .given
                .iter()
                .chain(&sources.known)
                .filter(|place| place.is_dir())
                .map(|place| place.display().to_string())
                .collect();
            let looked = if looked.is_empty() {
                "no place that packages use is there".to_string()
            } else {
                format!("looked below {}", looked.join(", "))
            };
            self.remark(&format!(
                "NOTE: no source text of {} ({looked}): --source DIR names a directory that has it",
                files.join(", ")
            ));
        }
        self.print_lines(lines.into_iter())
    }
}
