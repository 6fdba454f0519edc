// SPDX-License-Identifier: GPL-2.0-or-later

//! A hostile script as parts that can be removed.

/// A script, and how it is compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// The seed that it was generated from.
    pub seed: u64,
    /// Compiler options.
    pub options: Vec<String>,
    /// Globals and functions, one each.
    pub declarations: Vec<String>,
    /// In order.
    pub probes: Vec<Probe>,
}

/// A probe of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Its probe points, each as written.
    pub points: Vec<String>,
    /// The statements of its handler, each as written.
    pub statements: Vec<String>,
}

/// A library function, as listed by `spile --dump-functions`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name in scripts.
    pub name: String,
    /// `long`, `string` or `unknown`
    pub returns: String,
    /// The types of its parameters.
    pub parameters: Vec<String>,
}

/// What scripts of one kernel are made of.
#[derive(Clone, Debug)]
pub struct Known {
    /// Library functions.
    pub functions: Vec<Function>,
    /// What the runtime calls (`called.rs`).
    pub called: Vec<String>,
}

impl Script {
    /// The script as text, with its seed and options in a comment.
    pub fn text(&self) -> String {
        let probes = self.probes.iter().map(|probe| {
            format!("probe {} {{\n  {}\n}}\n", probe.points.join(",\n      "), probe.statements.join("\n  "))
        });
        format!(
            "# seed {}, {}\n{}\n{}",
            self.seed,
            self.options.join(" "),
            self.declarations.join("\n"),
            probes.collect::<String>()
        )
    }

    /// The script without one of its parts each, the largest parts first.
    pub fn smaller(&self) -> Vec<Script> {
        let mut found = Vec::new();
        let mut without = |change: &dyn Fn(&mut Script)| {
            let mut script = self.clone();
            change(&mut script);
            found.push(script);
        };
        for at in 0..self.probes.len() {
            if self.probes.len() > 1 {
                without(&|script| drop(script.probes.remove(at)));
            }
        }
        for at in 0..self.probes.len() {
            for point in 0..self.probes[at].points.len() {
                if self.probes[at].points.len() > 1 {
                    without(&|script| drop(script.probes[at].points.remove(point)));
                }
            }
            for statement in 0..self.probes[at].statements.len() {
                if self.probes[at].statements.len() > 1 {
                    without(&|script| drop(script.probes[at].statements.remove(statement)));
                }
            }
        }
        // The first two keep errors and skips from ending the session.
        for at in 2..self.options.len() {
            without(&|script| drop(script.options.remove(at)));
        }
        found
    }
}

impl Function {
    /// Parses `name:type (parameter:type, ...) /* text */`.
    pub fn parse(line: &str) -> Option<Function> {
        let (name, rest) = line.split_once(" (")?;
        let (name, returns) = name.split_once(':')?;
        let (parameters, _) = rest.split_once(')')?;
        let parameters = parameters.split(", ").filter(|parameter| !parameter.is_empty());
        let parameters =
            parameters.map(|parameter| parameter.split_once(':').map_or("long", |(_, ty)| ty).to_string()).collect();
        Some(Function { name: name.to_string(), returns: returns.to_string(), parameters })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_as_they_are_listed() {
        let function = Function::parse("substr:string (text:string, start:long, length:long) /* a part (of it) */")
            .expect("a function");
        assert_eq!((function.name.as_str(), function.returns.as_str()), ("substr", "string"));
        assert_eq!(function.parameters, ["string", "long", "long"]);
        assert_eq!(Function::parse("cpu:long ()").expect("a function").parameters, Vec::<String>::new());
        assert_eq!(Function::parse("no function"), None);
    }

    #[test]
    fn a_smaller_script_lacks_one_part() {
        let probe = |points: &[&str]| Probe {
            points: points.iter().map(ToString::to_string).collect(),
            statements: vec!["n++".into()],
        };
        let script = Script {
            seed: 1,
            options: ["-Da", "-Db", "-Dc"].map(String::from).to_vec(),
            declarations: vec!["global n".into()],
            probes: vec![probe(&["begin", "end"]), probe(&["error"])],
        };
        let smaller: Vec<(usize, usize, usize)> = script
            .smaller()
            .iter()
            .map(|script| {
                (script.probes.len(), script.probes.iter().map(|probe| probe.points.len()).sum(), script.options.len())
            })
            .collect();
        assert_eq!(smaller, [(1, 1, 3), (1, 2, 3), (2, 2, 3), (2, 2, 3), (2, 3, 2)]);
    }
}
