// SPDX-License-Identifier: GPL-2.0-or-later

//! `kernel.function("f")`, `module("m").function("f")` and their `.call`, `.inline` and `.return`: functions by their
//! debug information.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::code::{self, Code};
use super::context;
use super::lines::{FunctionStarts, Lines, covers, parse};
use super::location::{self, locate};
use super::passing::{passed, place_of_result, returned};
use super::prologue::{is_early, is_put_there, prologue_end};
use super::symbols::{refusal_of_part, refusal_of_return};
use super::taken::{Taken, rank};
use super::{
    CodePlace, Context, ContextError, Form, OtherOwners, Point, PointError, ProbeFamily, Resolver, Similar, Site,
    TypedLocation,
};
use crate::program::{Attachment, LongExpr};
use spile_debuginfo::target::Object;
use spile_debuginfo::{Address, DebugInfo, FoundVariable, Function, FunctionId, FunctionPattern, Unavailable};
use spile_source::Span;

/// A function's name in the string of a probe point: C++ has `operator""_x`.
pub(super) fn quoted(name: &str) -> Cow<'_, str> {
    if name.contains('"') { name.replace('"', "\\\"").into() } else { name.into() }
}

/// The family of `kernel.function`, `module().function`.
pub(super) static FAMILY: ProbeFamily = ProbeFamily::new(
    &[
        Form { spelling: "kernel.function(string)", doc: "entry of a kernel function, inlined copies included" },
        Form { spelling: "kernel.function(string).call", doc: "entry of a kernel function, inlined copies left out" },
        Form { spelling: "kernel.function(string).inline", doc: "inlined copies of a kernel function" },
        Form { spelling: "kernel.function(string).exported", doc: "entry of a kernel function that modules may call" },
        Form {
            spelling: "module(string).function(string).exported",
            doc: "entry of a module's function that others may call",
        },
        Form { spelling: "kernel.function(string).return", doc: "return of a kernel function" },
        Form {
            spelling: "kernel.function(string).return.maxactive(number)",
            doc: "the same, for at most N calls at once",
        },
        Form {
            spelling: "module(string).function(string)",
            doc: "entry of a module's function, inlined copies included",
        },
        Form {
            spelling: "module(string).function(string).call",
            doc: "entry of a module's function, inlined copies left out",
        },
        Form { spelling: "module(string).function(string).inline", doc: "inlined copies of a module's function" },
        Form { spelling: "module(string).function(string).return", doc: "return of a module's function" },
        Form {
            spelling: "module(string).function(string).return.maxactive(number)",
            doc: "the same, for at most N calls at once",
        },
    ],
    resolve,
);

fn resolve(point: &Point, resolver: &mut Resolver) -> Result<Vec<Site>, PointError> {
    let first = point.span();
    let objects = objects(point, resolver)?;
    let sites = in_each(&objects, |object| resolve_in(point, object, resolver))?;
    if sites.is_empty() {
        let (pattern, component) = point.string("function").unwrap_or((String::new(), first));
        return Err(PointError::NoMatch { component, pattern, object: "any of the modules".into() });
    }
    Ok(sites)
}

/// The sites that `resolve` finds in the objects. Of several objects not each must have what the point names: an error counts only
/// where there is one.
pub(super) fn in_each(
    objects: &[Rc<Object>],
    mut resolve: impl FnMut(&Rc<Object>) -> Result<Vec<Site>, PointError>,
) -> Result<Vec<Site>, PointError> {
    if let [object] = objects {
        return resolve(object);
    }
    Ok(objects.iter().flat_map(|object| resolve(object).unwrap_or_default()).collect())
}

/// The objects selected by a point's first component.
pub(super) fn objects(point: &Point, resolver: &mut Resolver) -> Result<Vec<Rc<Object>>, PointError> {
    let kernel = resolver.kernel()?;
    let failed = |error| PointError::Target { component: point.span(), error: Rc::new(error) };
    Ok(match point.string("module") {
        Some((name, _)) if name.contains(['*', '?', '[']) => {
            let matching = kernel.module_names().into_iter().filter(|module| spile_base::glob::matches(&name, module));
            matching.filter_map(|module| kernel.module(&module).ok()).collect()
        }
        Some((name, _)) => vec![resolver.module(&name).map_err(failed)?],
        None => vec![kernel.vmlinux().map_err(failed)?],
    })
}

/// What the suffix selects.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Suffix {
    All,
    Call,
    Inline,
    /// Functions of external linkage.
    Exported,
    Return,
}

impl Suffix {
    fn of(point: &Point) -> Suffix {
        match () {
            () if point.has("return") => Suffix::Return,
            () if point.has("call") => Suffix::Call,
            () if point.has("inline") => Suffix::Inline,
            () if point.has("exported") => Suffix::Exported,
            () => Suffix::All,
        }
    }
}

/// The argument of `maxactive`; 0 without it: the runtime chooses.
fn maxactive(point: &Point) -> Result<u32, PointError> {
    match point.number("maxactive") {
        None => Ok(0),
        Some((value, _)) if (0..=65535).contains(&value) => Ok(value as u32),
        Some((_, component)) => Err(PointError::Range { component, low: 0, high: 65535 }),
    }
}

pub(super) fn resolve_in(point: &Point, object: &Rc<Object>, resolver: &mut Resolver) -> Result<Vec<Site>, PointError> {
    let (text, component) = point.string("function").unwrap_or((String::new(), point.span()));
    let debug_failed = |error: &dyn std::fmt::Display| PointError::DebugInfo { component, message: error.to_string() };
    let (suffix, maxactive) = (Suffix::of(point), maxactive(point)?);
    let (pattern, lines) = parse(&text).ok_or_else(|| no_place(&text, component))?;
    let wild = pattern.name.contains(['*', '?', '[']);
    let debug = object.debug().map_err(|error| debug_failed(&error))?;
    let functions = debug.find_functions(&pattern).map_err(|error| debug_failed(&error))?;
    if functions.is_empty() {
        return Err(nothing(debug, &pattern, &text, component, object));
    }
    let code = Code::of(point, object, resolver)?;
    let mut finder = Finder {
        object,
        code,
        suffix,
        maxactive,
        names_only: resolver.names_only(),
        wild,
        bodies: BTreeMap::new(),
        copies: Taken::default(),
        sites: Vec::new(),
        inlined: 0,
        refused: None,
        left_out: Vec::new(),
    };
    let function_starts = match lines {
        Lines::First => None,
        _ => Some(FunctionStarts::new(debug, &pattern).map_err(|error| debug_failed(&error))?),
    };
    let (mut covered, mut exported) = (false, false);
    for id in functions {
        let function = debug.function(id).map_err(|error| debug_failed(&error))?;
        exported |= function.external;
        if wild && function.name.starts_with("__pfx_") {
            continue;
        }
        if let Some(function_starts) = &function_starts {
            let statements = debug.statements(id).map_err(|error| debug_failed(&error))?;
            if !covers(&lines, &function, &function_starts.own(&function, statements)) {
                continue;
            }
        }
        covered = true;
        finder.add(id, &function);
    }
    if !covered {
        return Err(PointError::NoMatch { component, pattern: text, object: described(object) });
    }
    if !finder.sites.is_empty() {
        resolver.left_out.append(&mut finder.left_out);
        return Ok(finder.sites);
    }
    Err(no_site(finder, exported, pattern.name, component))
}

/// Why `.exported` does not take a function.
pub(super) const STATIC: &str = "other files cannot call it: it is static";

/// Why functions of that name were found, and none of their places can be probed; `exported`: one of them is external.
fn no_site(finder: Finder, exported: bool, name: String, component: Span) -> PointError {
    let why = match finder.refused {
        Some(why) => why,
        None if finder.inlined > 0 && finder.suffix == Suffix::Return => {
            return PointError::OnlyInlined { component, name, copies: finder.inlined };
        }
        None if finder.suffix == Suffix::Inline => "no copy of it is inlined".to_string(),
        None if finder.suffix == Suffix::Exported && !exported => STATIC.to_string(),
        None if finder.inlined > 0 => {
            format!("all {} copies of it are inlined: use .inline instead of .call", finder.inlined)
        }
        None => format!("the compiler has left no copy of it in {}", described(finder.object)),
    };
    PointError::NotProbeable { component, name, why }
}

/// The beginning of a point in the object.
pub(super) fn owner_of(object: &Object) -> String {
    match object.is_kernel() {
        true => "kernel".into(),
        false if object.is_program() => format!("process(\"{}\")", object.name()),
        false => format!("module(\"{}\")", object.name()),
    }
}

/// The object in a message: "the kernel", "module NAME", or a program's path.
pub(super) fn described(object: &Object) -> String {
    match object.is_kernel() {
        true => "the kernel".into(),
        false if object.is_program() => object.name().into(),
        false => format!("module {}", object.name()),
    }
}

/// The error for a string that is not FUNCTION@FILE:LINE or one of its variants.
pub(super) fn no_place(text: &str, component: Span) -> PointError {
    let what = format!(
        "`{text}` as a place: FUNCTION@FILE:LINE is one, with :*, :LINE-LINE, :LINE,LINE or +LINES after the file"
    );
    PointError::Unsupported { component, what }
}

/// The error for a pattern without a function in the object, with names that are similar.
pub(super) fn nothing(
    debug: &DebugInfo,
    pattern: &FunctionPattern,
    text: &str,
    component: Span,
    object: &Rc<Object>,
) -> PointError {
    if debug.is_btf() && pattern.file.is_some() {
        let why = "without DWARF nothing is known of files and lines: leave out what follows the @, or install the debug package".to_string();
        return PointError::NotProbeable { component, name: text.to_string(), why };
    }
    if pattern.file.is_some()
        && let Some(why) = files_of(debug, &pattern.name)
    {
        return PointError::NotProbeable { component, name: text.to_string(), why };
    }
    if pattern.name.contains(['*', '?', '[']) || pattern.file.is_some() {
        return PointError::NoMatch { component, pattern: text.to_string(), object: described(object) };
    }
    PointError::NoFunction {
        component,
        name: pattern.name.clone(),
        object: described(object),
        near: Similar::InObject(object.clone()),
        other_owners: OtherOwners::default(),
    }
}

/// In which files functions of that name are; None: it is a pattern, or none has it.
fn files_of(debug: &DebugInfo, name: &str) -> Option<String> {
    /// Files that a message names.
    const MOST: usize = 4;
    if name.contains(['*', '?', '[']) {
        return None;
    }
    let found = debug.find_functions(&FunctionPattern { name: name.to_string(), file: None }).ok()?;
    let files = found.into_iter().filter_map(|id| Some(debug.function(id).ok()?.file));
    let mut files: Vec<String> = files.filter(|file| !file.is_empty()).collect();
    files.sort();
    files.dedup();
    let others = files.len().saturating_sub(MOST);
    files.truncate(MOST);
    let named = files.join(", ");
    match (files.is_empty(), others) {
        (true, _) => None,
        (false, 0) => Some(format!("functions of that name are in {named}")),
        (false, others) => Some(format!("functions of that name are in {named} and {others} other files")),
    }
}

/// Which of several functions that begin at one place is chosen, the lowest first: one whose file is known, then by its name.
type Preference = (bool, (usize, usize));

struct Finder<'o> {
    object: &'o Rc<Object>,
    code: Code,
    suffix: Suffix,
    maxactive: u32,
    /// Of places of the same spelling the first one that can be probed is enough.
    names_only: bool,
    /// A pattern asks for the functions, not a name.
    wild: bool,
    /// The site of the out-of-line code that begins there: a call is one hit, however many names its function has.
    bodies: BTreeMap<Address, (usize, Preference)>,
    /// Inlined copies.
    copies: Taken,
    sites: Vec<Site>,
    /// Inlined copies, which a return probe cannot use.
    inlined: usize,
    refused: Option<String>,
    /// Reports a place that is not probed, with the reason.
    left_out: Vec<String>,
}

impl Finder<'_> {
    fn add(&mut self, id: FunctionId, function: &Function) {
        if self.suffix != Suffix::Inline && (self.suffix != Suffix::Exported || function.external) {
            if !self.object.has_symbols() && self.object.is_kernel() {
                self.add_named(id, function);
            }
            // Control reaches a split-off part only through the function, which was hit before.
            let is_hit_before = function.bodies.iter().any(|body| !body.is_part())
                || self.suffix == Suffix::All && !function.inlined.is_empty();
            let bodies = function.bodies.iter().filter(|body| !is_hit_before || !body.is_part());
            self.add_sites(id, function, bodies.map(|body| body.entry), false);
        }
        match self.suffix {
            Suffix::All | Suffix::Inline => {
                self.add_sites(id, function, function.inlined.iter().map(|instance| instance.address), true);
            }
            Suffix::Return | Suffix::Call => self.inlined += function.inlined.len(),
            Suffix::Exported => {}
        }
    }

    /// Adds places that are spelled the same.
    fn add_sites(&mut self, id: FunctionId, function: &Function, places: impl Iterator<Item = Address>, inlined: bool) {
        let before = self.sites.len();
        for address in places {
            self.add_site(id, function, address, inlined);
            if self.names_only && self.sites.len() > before {
                return;
            }
        }
    }

    fn add_site(&mut self, id: FunctionId, function: &Function, address: Address, inlined: bool) {
        let returning = self.suffix == Suffix::Return;
        if inlined
            && self.object.is_program()
            && !self.copies.take(&function.name, &function.file, function.line, address)
        {
            return;
        }
        let preference = (function.file.is_empty(), rank(&function.name));
        let known = self.bodies.get(&address).copied().filter(|_| !inlined && !self.names_only);
        if known.is_some_and(|(_, before)| before <= preference) {
            return;
        }
        let (start, mut address) = (address, address);
        let mut entry = None;
        if self.object.is_program()
            && !returning
            && !inlined
            && let Ok(debug) = self.object.debug()
            && let Some(first) = prologue_end(debug, id, address)
        {
            entry = self.code.at(self.object, address).ok().map(|attachment| (address, attachment));
            address = first;
        }
        if let Some(why) = self.refusal(function, start, returning, inlined) {
            self.refused = Some(why.into());
            self.left_out.push(format!("{}: {why}", function.name));
            return;
        }
        let attachment = match returning {
            true if function.name == NEVER_RETURNS && !self.object.is_program() => Err(TO_ANOTHER_TASK),
            true => self.code.at_return(self.object, address, self.maxactive),
            false => self.code.at(self.object, address),
        };
        let attachment = match attachment {
            Ok(attachment) => attachment,
            Err(why) => {
                self.refused = Some(why.into());
                self.left_out.push(format!("{} ({}:{}): {why}", function.name, function.file, function.line));
                return;
            }
        };
        let index = self.sites.len();
        self.push(id, function, address, attachment, inlined, entry);
        let index = known.map_or(index, |(before, _)| {
            self.sites.swap_remove(before);
            before
        });
        if !inlined {
            self.bodies.insert(start, (index, preference));
        }
    }

    /// Why a function of a program cannot be probed, by its code and its symbol.
    fn refusal(&self, function: &Function, entry: Address, returning: bool, inlined: bool) -> Option<&'static str> {
        if !self.object.is_program() || inlined {
            return None;
        }
        let is_symbol = self.object.is_symbols();
        if is_symbol
            && (returning || self.wild)
            && let Some(why) = refusal_of_part(&function.name)
        {
            return Some(why);
        }
        // Debug information describes functions in assembly, too, and those that end the program.
        if returning && self.wild { refusal_of_return(self.object, entry) } else { None }
    }

    /// Attached only by name, if no address is known.
    fn add_named(&mut self, id: FunctionId, function: &Function) {
        let returning = self.suffix == Suffix::Return;
        let (symbol, maxactive) = (function.name.clone(), self.maxactive);
        let attachment = code::at_symbol(symbol, returning, maxactive);
        self.push(id, function, Address { section: None, offset: 0 }, attachment, false, None);
    }

    /// `entry`: the function's first instruction, where the place is behind that.
    fn push(
        &mut self,
        id: FunctionId,
        function: &Function,
        address: Address,
        attachment: Attachment,
        inlined: bool,
        entry: Option<(Address, Attachment)>,
    ) {
        let returning = self.suffix == Suffix::Return;
        let module = if self.object.is_kernel() { "kernel".to_string() } else { self.object.name().to_string() };
        let owner = owner_of(self.object);
        let suffix = match (self.suffix, inlined) {
            (Suffix::Return, _) => ".return",
            (Suffix::Call, _) => ".call",
            (Suffix::Exported, _) => ".exported",
            (_, true) => ".inline",
            (_, false) => "",
        };
        let (name, file, line) = (&function.name, &function.file, function.line);
        // BTF has no files.
        // Joined, not formatted: a listing has a hundred thousand.
        let line = line.to_string();
        let (place, file_and_line) = match file.is_empty() {
            true => (name.clone(), ["", "", "", ""]),
            false => ([name, " (", file, ":", &line, ")"].concat(), ["@", file, ":", &line]),
        };
        let [at, file, colon, line] = file_and_line;
        let context = FunctionContext { returning, entry, ..FunctionContext::at(self.object, id, place, address) };
        self.sites.push(Site {
            point: [&owner, ".function(\"", &quoted(name), at, file, colon, line, "\")", suffix].concat(),
            function: name.clone(),
            module,
            attachment,
            context: Rc::new(context),
        });
    }
}

/// Functions whose returns are not hooked: they return to another task's stack (kretprobe_blacklist in
/// arch/x86/kernel/kprobes/core.c).
pub(super) const NEVER_RETURNS: &str = "__switch_to";
/// Why.
pub(super) const TO_ANOTHER_TASK: &str = "it returns to another task than the one that called it";

/// Variables at a function's entry or inlined copy, and the return value.
pub(super) struct FunctionContext {
    /// The kernel or module.
    pub object: Rc<Object>,
    /// The probed function.
    pub function: FunctionId,
    /// The function with the code, where the probed one is inlined there and found by its address: its variables are in scope too.
    pub around: Option<FunctionId>,
    /// For messages.
    pub place: String,
    /// Of the probed instruction.
    pub address: Address,
    /// The probe is at the return: `$return` is there, and variables are as at the entry.
    pub returning: bool,
    /// The function's first instruction, where the probed one is behind that; and how a probe is attached to it.
    pub entry: Option<(Address, Attachment)>,
}

impl FunctionContext {
    /// At an instruction of the function, which is not its return.
    pub(super) fn at(object: &Rc<Object>, function: FunctionId, place: String, address: Address) -> FunctionContext {
        let object = object.clone();
        FunctionContext { object, function, around: None, place, address, returning: false, entry: None }
    }

    fn debug(&self) -> Result<&DebugInfo, ContextError> {
        self.object.debug().map_err(|error| ContextError::DebugInfo(error.to_string()))
    }

    /// The variable, where it is at the probed instruction.
    pub(super) fn found(&self, name: &str) -> Result<FoundVariable, ContextError> {
        let failed = |error: spile_debuginfo::Error| ContextError::DebugInfo(error.to_string());
        let debug = self.debug()?;
        let mut found = debug.variable(self.function, self.address, name).map_err(failed)?;
        if let (Some(around), Err(Unavailable::Unknown)) = (self.around, &found) {
            found = debug.variable_around(around, self.address, name).map_err(failed)?;
        }
        // The entry of a function that stores its parameters at the places of the debug information only later.
        let early = self.object.is_program() && is_early(debug, self.function, &found);
        let is_late = || early || is_put_there(debug, self.function, self.address, name, &found);
        if self.object.is_program() && (early || found.is_err()) && self.is_at_entry(debug) && is_late() {
            let parameters = debug.parameters(self.function).map_err(failed)?;
            let parameter = parameters.into_iter().find(|parameter| parameter.name == name);
            if let Some(parameter) = &parameter
                && let Some(location) = passed(debug, self.function, self.address, name)
            {
                return Ok(FoundVariable { type_id: parameter.type_id, location });
            }
            // A variable in a frame that does not exist yet has none either.
            if parameter.is_some() || early {
                let late = "its value is put where the debug information has it only after the function's entry";
                found.map_err(location::unavailable)?;
                return Err(ContextError::NoValue(vec![late.into()]));
            }
        }
        found.map_err(location::unavailable)
    }

    /// Whether the probed instruction is the first of the function.
    fn is_at_entry(&self, debug: &DebugInfo) -> bool {
        let function = debug.function(self.function);
        function.is_ok_and(|function| function.bodies.iter().any(|body| body.entry == self.address))
    }

    fn return_value(&self) -> Result<TypedLocation, ContextError> {
        if !self.returning {
            return Err(ContextError::NotReturn);
        }
        let function =
            self.debug()?.function(self.function).map_err(|error| ContextError::DebugInfo(error.to_string()))?;
        let untold = if self.object.is_symbols() { ContextError::returns_untold() } else { ContextError::Void };
        let type_id = function.return_type.ok_or(untold)?;
        let location = returned(self.debug()?, self.function, type_id, self.object.is_program())
            .map_err(|error| ContextError::DebugInfo(error.to_string()))?;
        let location = location.map_err(|why| ContextError::NoValue(vec![why]))?;
        Ok(TypedLocation { object: self.object.clone(), type_id, location })
    }
}

impl Context for FunctionContext {
    fn variable(&self, name: &str) -> Result<TypedLocation, ContextError> {
        if name == "return" {
            return self.return_value();
        }
        let found = self.found(name)?;
        let location = locate(&found.location, &self.object).map_err(|why| ContextError::NoValue(vec![why]))?;
        Ok(TypedLocation { object: self.object.clone(), type_id: found.type_id, location })
    }

    fn other_lines(&self, name: &str) -> Option<String> {
        let debug = self.debug().ok()?;
        let other = debug.other_lines(self.function, self.address, name).ok()?;
        let function = debug.function(self.function).ok()?;
        let pattern = FunctionPattern { name: function.name.clone(), file: Some(function.file.clone()) };
        let own = FunctionStarts::new(debug, &pattern).ok()?.lines_of(&function);
        Some(location::other_lines(&other, own))
    }

    fn doubt(&self, name: &str) -> Option<String> {
        if name != "return" || !self.object.is_program() {
            return None;
        }
        self.debug().ok()?.may_return_nothing(self.function, self.address).ok()?
    }

    fn parameters(&self) -> Vec<String> {
        let parameters = self.debug().ok().and_then(|debug| debug.parameters(self.function).ok());
        parameters.unwrap_or_default().into_iter().map(|variable| variable.name).collect()
    }

    fn readable(&self) -> Vec<(String, TypedLocation)> {
        // Of a program's function at its entry and return parameters are where the caller has put them.
        if self.object.is_program() && self.debug().is_ok_and(|debug| self.is_at_entry(debug)) {
            return context::each_readable(self);
        }
        let found = self.debug().ok().and_then(|debug| debug.variables(self.function, self.address).ok());
        let readable = |(name, found): (String, Result<FoundVariable, Unavailable>)| {
            let found = found.ok()?;
            let location = locate(&found.location, &self.object).ok()?;
            Some((name, TypedLocation { object: self.object.clone(), type_id: found.type_id, location }))
        };
        found.unwrap_or_default().into_iter().filter_map(readable).collect()
    }

    fn locals(&self) -> Vec<String> {
        let locals = self.debug().ok().and_then(|debug| debug.locals(self.function, self.address).ok());
        locals.unwrap_or_default().into_iter().map(|variable| variable.name).collect()
    }

    fn is_return(&self) -> bool {
        self.returning
    }

    fn has_registers(&self) -> bool {
        true
    }

    fn has_variables(&self) -> bool {
        true
    }

    fn object(&self) -> Option<Rc<Object>> {
        Some(self.object.clone())
    }

    fn place(&self) -> String {
        self.place.clone()
    }

    fn at_entry(&self) -> Option<(Attachment, Rc<dyn Context>)> {
        let (address, attachment) = self.entry.clone()?;
        let at_entry = FunctionContext::at(&self.object, self.function, self.place.clone(), address);
        let context = FunctionContext { around: self.around, ..at_entry };
        Some((attachment, Rc::new(context)))
    }

    fn result_at_entry(&self) -> Option<LongExpr> {
        let debug = self.debug().ok().filter(|_| self.returning && self.object.is_program())?;
        let type_id = debug.function(self.function).ok()?.return_type?;
        place_of_result(debug, self.function, type_id).ok()?
    }

    fn code(&self) -> Option<CodePlace> {
        Some(CodePlace { object: self.object.clone(), function: self.function, address: self.address })
    }
}
