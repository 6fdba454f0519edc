// SPDX-License-Identifier: GPL-2.0-or-later

//! The kernel and options that scripts are checked with: those of the command line, overridden by the client's, in
//! `initializationOptions` or as its configuration `spile`.
//!
//!     { "release": "6.1.0-56-amd64", "index": "FILE", "tapset": ["DIR"], "modules": ["FILE"], "guru": true, "args": ["1"] }

use std::path::{Path, PathBuf};

use serde_json::Value;
use spile_base::cache;

/// What scripts are checked against.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Kernel release, or the path of a build tree; None: `usual_release`.
    pub release: Option<String>,
    /// The release that is used if none is given.
    pub usual_release: String,
    /// An index file, which determines the kernel.
    pub index: Option<PathBuf>,
    /// Directory in which the kernel's system is.
    pub sysroot: Option<PathBuf>,
    /// Files of modules that are not the kernel's own.
    pub modules: Vec<PathBuf>,
    /// A library instead of the one that is part of the program.
    pub library: Option<PathBuf>,
    /// Further directories of library scripts.
    pub tapset: Vec<PathBuf>,
    /// Embedded C, and writes to the kernel, are allowed.
    pub guru: bool,
    /// Arguments of the scripts; None: not known.
    pub args: Option<Vec<String>>,
    /// The version of the language; None: the newest.
    pub compatible: Option<String>,
    /// System calls are printed as strace prints them.
    pub strace_style: bool,
    /// Where debug information is indexed.
    pub cache: cache::Settings,
}

impl Settings {
    /// The same with the client's settings, and a sentence for each invalid value. `root`: the directory that relative
    /// paths are in.
    pub fn with(&self, given: &Value, root: Option<&Path>) -> (Settings, Vec<String>) {
        let mut reader = Reader { given: given.get("spile").unwrap_or(given), root, problems: Vec::new() };
        let mut settings = self.clone();
        if let Some(release) = reader.text("release") {
            // Either of the two determines the kernel, and the client's setting overrides the command line's.
            settings.index = None;
            settings.release =
                if release.contains('/') { Some(reader.path(&release).display().to_string()) } else { Some(release) };
        }
        if let Some(index) = reader.text("index") {
            settings.index = Some(reader.path(&index));
        }
        if let Some(sysroot) = reader.text("sysroot") {
            settings.sysroot = Some(reader.path(&sysroot));
        }
        if let Some(paths) = reader.list("modules") {
            settings.modules = paths.iter().map(|path| reader.path(path)).collect();
        }
        if let Some(paths) = reader.list("tapset") {
            settings.tapset = paths.iter().map(|path| reader.path(path)).collect();
        }
        if let Some(guru) = reader.flag("guru") {
            settings.guru = guru;
        }
        if let Some(args) = reader.list("args") {
            settings.args = Some(args);
        }
        (settings, reader.problems)
    }
}

struct Reader<'v> {
    given: &'v Value,
    root: Option<&'v Path>,
    problems: Vec<String>,
}

impl Reader<'_> {
    fn value(&self, name: &str) -> Option<&Value> {
        self.given.get(name).filter(|value| !value.is_null())
    }

    fn wrong<T>(&mut self, name: &str, what: &str) -> Option<T> {
        self.problems.push(format!("the setting {name} has to be {what}"));
        None
    }

    /// An empty text is the same as none: editors send one for settings that are not set.
    fn text(&mut self, name: &str) -> Option<String> {
        match self.value(name)? {
            Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
            _ => self.wrong(name, "a string"),
        }
    }

    fn flag(&mut self, name: &str) -> Option<bool> {
        match self.value(name)? {
            Value::Bool(flag) => Some(*flag),
            _ => self.wrong(name, "true or false"),
        }
    }

    fn list(&mut self, name: &str) -> Option<Vec<String>> {
        let texts = match self.value(name)? {
            Value::String(text) => Some(vec![text.clone()]),
            Value::Array(values) => values.iter().map(|value| value.as_str().map(str::to_string)).collect(),
            _ => None,
        };
        texts.or_else(|| self.wrong(name, "a list of strings"))
    }

    fn path(&self, text: &str) -> PathBuf {
        if let Some(rest) = text.strip_prefix("~/")
            && let Some(home) = std::env::var_os("HOME")
        {
            return PathBuf::from(home).join(rest);
        }
        self.root.map_or_else(|| PathBuf::from(text), |root| root.join(text))
    }
}

#[cfg(test)]
pub(crate) fn for_tests() -> Settings {
    Settings {
        release: None,
        usual_release: "6.1.0-none".into(),
        index: None,
        sysroot: Some("/nonexistent".into()),
        modules: Vec::new(),
        library: None,
        tapset: Vec::new(),
        guru: false,
        args: None,
        compatible: None,
        strace_style: false,
        cache: cache::Settings { directory: None, limit: 0, poisoned: false },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_clients_settings_override_the_command_line() {
        let usual = Settings { index: Some("/x".into()), ..for_tests() };
        let given =
            json!({ "release": "6.12.1", "tapset": "lib", "guru": true, "args": ["a", "b"], "modules": ["/m.ko"] });
        let (settings, problems) = usual.with(&given, Some(Path::new("/home")));
        assert_eq!(problems, [""; 0]);
        assert_eq!((settings.release.as_deref(), settings.index, settings.guru), (Some("6.12.1"), None, true));
        assert_eq!((settings.tapset, settings.modules), (vec!["/home/lib".into()], vec!["/m.ko".into()]));
        assert_eq!(settings.args, Some(vec!["a".to_string(), "b".to_string()]));
        let (settings, _) = usual.with(&json!({ "spile": { "index": "i" } }), Some(Path::new("/w")));
        assert_eq!(settings.index, Some("/w/i".into()));
    }

    #[test]
    fn invalid_values_are_named() {
        let (settings, problems) = for_tests().with(&json!({ "guru": 1, "tapset": [2], "release": "", "x": 1 }), None);
        assert_eq!(problems.len(), 2);
        assert!(problems[0].contains("tapset") && problems[1].contains("guru"));
        assert_eq!((settings.release, settings.guru), (None, false));
        assert!(for_tests().with(&Value::Null, None).1.is_empty());
    }
}
