// SPDX-License-Identifier: GPL-2.0-or-later

//! Probe families: the meaning of a probe point's components.
//!
//! A family is a [`ProbeFamily`] record: the forms of its points, and a function that resolves a point to [`Site`]s, each
//! with its attachment and the context variables that its handler may use. `elaborate` knows none of them.

mod address;
mod callees;
mod code;
mod context;
mod error;
pub mod fingerprint;
mod form;
mod function;
mod inside;
mod kprobe;
mod lines;
mod location;
mod netfilter;
mod owner;
mod parts;
mod passing;
mod perf;
mod process;
mod procfs;
mod prologue;
pub mod registers;
mod resolver;
mod session;
mod statement;
mod symbols;
mod syscall;
mod syscall_event;
mod taken;
mod timer;
mod tracepoint;
mod watch;

pub use context::{
    BitRange, CodePlace, Context, ContextError, Location, NoContext, Part, Site, TextVariable, TypedLocation,
};
pub use error::{BRACES_IN_STRING, OtherOwners, PointError, Similar, target_diagnostic};
pub use form::{Form, Point, spelling};
pub use location::{locate, locate_in_process, why_unavailable};
pub use owner::other_owners;
pub use parts::{beyond, joined};
pub use resolver::{OwnProcess, Resolver, is_shared_library};
pub(crate) use session::end;
pub use tracepoint::names as tracepoints;

use crate::program::Attachment;
use form::{FormMatch, fit};
use spile_base::glob;
use spile_source::Span;
use spile_source::diagnostic::{Code, Diagnostic};
use spile_syntax::ast::Component;

/// One family of probes. A family is a record in its own file and a line in [`FAMILIES`]; how its probes are attached is
/// described by the [`Mechanism`](crate::program::Mechanism) of the attachments that `resolve` returns.
pub struct ProbeFamily {
    /// The points of the family, with a line of documentation for each.
    pub forms: &'static [Form],
    /// Its probes are always reached: an empty handler then has no purpose.
    pub unconditional: bool,
    /// Resolves a point that matches one of the forms to its sites.
    pub resolve: fn(&Point, &mut Resolver) -> Result<Vec<Site>, PointError>,
    /// Checks the sites of a script together, each given with the place of its point.
    pub check: fn(&[(&Attachment, Span)]) -> Vec<Diagnostic>,
}

impl ProbeFamily {
    /// A family whose probes are reached only if something happens, and are independent of each other.
    const fn new(
        forms: &'static [Form],
        resolve: fn(&Point, &mut Resolver) -> Result<Vec<Site>, PointError>,
    ) -> ProbeFamily {
        ProbeFamily { forms, unconditional: false, resolve, check: |_| Vec::new() }
    }
}

static FAMILIES: &[&ProbeFamily] = &[
    &session::FAMILY,
    &timer::FAMILY,
    &perf::FAMILY,
    &function::FAMILY,
    &statement::FAMILY,
    &inside::FAMILY,
    &address::FAMILY,
    &tracepoint::FAMILY,
    &syscall::FAMILY,
    &kprobe::FAMILY,
    &procfs::FAMILY,
    &netfilter::FAMILY,
    &watch::FAMILY,
    &process::event::FAMILY,
    &process::data::FAMILY,
    &process::CODE[0],
    &process::CODE[1],
    &process::CODE[2],
    &process::CODE[3],
    &process::CODE[4],
    &process::CODE[5],
];

/// All forms of all families.
pub fn forms() -> impl Iterator<Item = &'static Form> {
    FAMILIES.iter().flat_map(|family| family.forms)
}

/// Expands components with wildcards to forms of all families: `b*` is `begin`, `timer.p*` is `timer.profile`.
pub fn matching(components: &[Component]) -> Vec<Vec<Component>> {
    let spelled = |form: &Form| {
        let parts: Vec<&str> = form.spelling.split('.').collect();
        if parts.len() != components.len() {
            return None;
        }
        let pairs = components.iter().zip(parts);
        let named: Vec<Component> = pairs
            .map(|(component, part)| {
                let name = part.split('(').next().unwrap_or(part);
                let hidden = name.starts_with('_') && !component.name.starts_with('_');
                let name = if glob::matches(&component.name, name) && !hidden { name } else { "" };
                Component { name: name.to_string(), ..component.clone() }
            })
            .collect();
        matches!(fit(form, &named), FormMatch::Whole).then_some(named)
    };
    forms().filter_map(spelled).collect()
}

/// Whether a probe at the point is always reached, like `begin` and timers.
pub fn is_unconditional(components: &[Component]) -> bool {
    let first = |form: &Form| form.spelling.split(['.', '(']).next().unwrap_or_default();
    let Some(component) = components.first() else { return false };
    let families = FAMILIES.iter().filter(|family| family.unconditional);
    families.flat_map(|family| family.forms).any(|form| first(form) == component.name)
}

/// Checks the sites of a script together, each given with the place of its point.
pub fn check(sites: &[(&Attachment, Span)]) -> Vec<Diagnostic> {
    FAMILIES.iter().flat_map(|family| (family.check)(sites)).collect()
}

/// Files that a warning names.
const MOST_FILES: usize = 4;

/// The warning that several files have a static variable of that name, without the place.
pub fn several_statics(name: &str, files: &[String]) -> Diagnostic {
    let mut named = files.iter().take(MOST_FILES).cloned().collect::<Vec<_>>().join(", ");
    if files.len() > MOST_FILES {
        named.push_str(&format!(" and {} more", files.len() - MOST_FILES));
    }
    let message = format!("{} files have a static variable `{name}`", files.len());
    Diagnostic::warning(Code("W0110"), message).note(format!("they are {named}"))
}

/// The sites of a probe point that is not an alias.
pub fn resolve(components: &[Component], span: Span, resolver: &mut Resolver) -> Result<Vec<Site>, PointError> {
    let mut longest = 0;
    let mut argument = None;
    for family in FAMILIES {
        for form in family.forms {
            match fit(form, components) {
                FormMatch::Whole => return (family.resolve)(&Point { form, components }, resolver),
                FormMatch::Until(index) => longest = longest.max(index),
                FormMatch::Argument(index) => {
                    argument
                        .get_or_insert_with(|| (index, form.spelling.split('.').nth(index).unwrap_or("").to_string()));
                    longest = longest.max(index);
                }
            }
        }
    }
    if let Some((index, expected)) = argument.filter(|(index, _)| *index >= longest) {
        let component = components.get(index).map_or(span, |component| component.span);
        return Err(PointError::Argument { component, expected });
    }
    let before = components.get(..longest).unwrap_or(components);
    let mut follow: Vec<String> = forms()
        .filter(|form| {
            !matches!(fit(form, before), FormMatch::Argument(_)) && fit(form, before) != FormMatch::Until(0)
                || before.is_empty()
        })
        .filter_map(|form| {
            let parts: Vec<&str> = form.spelling.split('.').collect();
            let same =
                before.iter().zip(&parts).all(|(component, part)| part.split('(').next() == Some(&component.name));
            if same { parts.get(before.len()).map(ToString::to_string) } else { None }
        })
        .collect();
    follow.sort();
    follow.dedup();
    let (component, name) = match components.get(longest) {
        Some(component) => (component.span, component.name.clone()),
        None => (span, String::new()),
    };
    Err(PointError::Unknown { component, known: before.len(), follow, name })
}
