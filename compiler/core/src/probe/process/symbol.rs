// SPDX-License-Identifier: GPL-2.0-or-later

//! Functions of programs that debug information does not have under the name asked for: by the symbol table. Where it has the
//! code under another name, as glibc's `malloc` under `__libc_malloc`, the handler has the variables of that one. An indirect
//! function is all that its name may stand for.

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::probe::code::Code;
use crate::probe::function::{FunctionContext, STATIC, owner_of};
use crate::probe::symbols::{refusal_of_part, refusal_of_return};
use crate::probe::taken::rank;
use crate::probe::{Context, ContextError, Point, PointError, Resolver, Site, TypedLocation};
use spile_base::glob;
use spile_debuginfo::target::Object;
use spile_debuginfo::{Address, CodeSymbol, FunctionId, FunctionPattern, demangled, last_part};
use spile_source::Span;
use spile_source::diagnostic::{self, Diagnostic};

/// Why an indirect function is not probed.
const UNSHOWN: &str = "it is chosen when the program is loaded (an indirect function), and its resolver does not show among which: name one of its implementations";

/// `otherwise`: the error where no symbol has the name either.
pub(super) fn resolve_in(
    point: &Point,
    object: &Rc<Object>,
    resolver: &mut Resolver,
    otherwise: PointError,
) -> Result<Vec<Site>, PointError> {
    let (name, component) = point.string("function").unwrap_or((String::new(), point.span()));
    let found = object.functions_by_symbol(&name);
    if found.is_empty() {
        return Err(otherwise);
    }
    let refused = |name: String, why: &str| PointError::NotProbeable { component, name, why: why.into() };
    if point.has("inline") {
        return Err(refused(name, "no copy of it is inlined"));
    }
    let (sites, why) = sites(point, object, resolver, found, is_pattern(&name))?;
    match why.filter(|_| sites.is_empty()) {
        Some(why) => Err(refused(name, why)),
        None => Ok(sites.into_iter().map(|(site, _)| site).collect()),
    }
}

/// The functions that a pattern fits and debug information does not have, or one of which it has only inlined copies.
pub(super) fn others(point: &Point, object: &Rc<Object>, resolver: &mut Resolver) -> Result<Vec<Site>, PointError> {
    let (name, component) = point.string("function").unwrap_or((String::new(), point.span()));
    let failed = |error: spile_debuginfo::Error| PointError::DebugInfo { component, message: error.to_string() };
    // What files they are from is not known.
    if name.contains('@') || point.has("inline") {
        return Ok(Vec::new());
    }
    let debug = object.debug().map_err(failed)?;
    let mut known: BTreeSet<Address> = BTreeSet::new();
    for id in debug.find_functions(&FunctionPattern { name: name.clone(), file: None }).map_err(failed)? {
        for body in debug.function(id).map_err(failed)?.bodies {
            known.insert(body.entry);
            known.extend(body.other_parts.into_iter().map(|(start, _)| start));
        }
    }
    let is_pattern = is_pattern(&name);
    if !is_pattern && !known.is_empty() {
        return Ok(Vec::new());
    }
    let mut found = object.functions_by_symbol(&name);
    // Where debug information is the symbol table itself, it does not have these.
    found.retain(|symbol| if debug.is_symbols() { symbol.indirect } else { !known.contains(&symbol.at) });
    let (mut sites, _) = sites(point, object, resolver, found, is_pattern)?;
    // An indirect function may stand for one of those.
    sites.retain(|(_, at)| !known.contains(at));
    Ok(sites.into_iter().map(|(site, _)| site).collect())
}

/// `operator*` is a name.
pub(super) fn is_pattern(name: &str) -> bool {
    glob::is_pattern(name) && !name.contains("operator")
}

/// Sites with their places, and why a place cannot be probed.
type Found = (Vec<(Site, Address)>, Option<&'static str>);

/// The sites of functions, and why a place of one cannot be probed. Those that a pattern fits are left out where they are no
/// function of their own, or may be none that returns.
fn sites(
    point: &Point,
    object: &Rc<Object>,
    resolver: &mut Resolver,
    found: Vec<CodeSymbol>,
    is_pattern: bool,
) -> Result<Found, PointError> {
    // A program without a place is none of the session's.
    if found.is_empty() {
        return Ok((Vec::new(), None));
    }
    let code = Code::of(point, object, resolver)?;
    let mut refused = None;
    let mut refuse = |resolver: &mut Resolver, symbol: &str, why: &'static str| {
        resolver.skip(symbol, why);
        refused = Some(why);
    };
    let mut places: Vec<(String, Address)> = Vec::new();
    for CodeSymbol { name, at, global, indirect } in found {
        if is_pattern && is_thunk(&name) {
            continue;
        }
        let why = match () {
            () if point.has("exported") && !global => Some(STATIC),
            () if point.has("return") || is_pattern => refusal_of_part(&name),
            () => None,
        };
        let why = why.or_else(|| refusal_of_return(object, at).filter(|_| is_pattern && point.has("return")));
        let implementations = indirect.then(|| object.implementations(at).unwrap_or_default());
        match (why, implementations) {
            (Some(why), _) => refuse(resolver, &name, why),
            (None, None) => places.push((name, at)),
            (None, Some(all)) if all.is_empty() => refuse(resolver, &name, UNSHOWN),
            (None, Some(all)) => places.extend(all.into_iter().map(|each| (name.clone(), each))),
        }
    }
    if !resolver.names_only() {
        places = without_aliases(places);
    }
    let (mut sites, mut left_out) = (Vec::new(), Vec::new());
    for (symbol, at) in places {
        match site(point, object, code, &symbol, at) {
            Ok(site) => sites.push((site, at)),
            Err(why) => {
                refuse(resolver, &symbol, why);
                left_out.push((at, why));
            }
        }
    }
    if !is_pattern && !sites.is_empty() && !left_out.is_empty() {
        resolver.warn(some_left_out(point, object, sites.len(), &left_out));
    }
    Ok((sites, refused))
}

/// Of an indirect function: which implementation is called depends on the processor, so that there may be no hit at all.
fn some_left_out(point: &Point, object: &Object, probed: usize, left_out: &[(Address, &'static str)]) -> Diagnostic {
    let (name, component) = point.string("function").unwrap_or((String::new(), point.span()));
    let (left, all) = (left_out.len(), left_out.len() + probed);
    let message = format!("{left} of the {all} implementations of `{name}` cannot be probed");
    let mut warning = Diagnostic::warning(diagnostic::Code("W0115"), message).at(component, "");
    for (at, why) in left_out {
        let name = object.functions_at(*at).into_iter().next().unwrap_or_else(|| format!("{:#x}", at.offset));
        warning = warning.note(format!("{name}: {why}"));
    }
    warning
}

/// Whether a symbol is of code that only leads to a function, a thunk of C++.
fn is_thunk(symbol: &str) -> bool {
    symbol.contains("thunk to ") || ["_ZTh", "_ZTv", "_ZTc"].iter().any(|thunk| symbol.starts_with(thunk))
}

/// Of several symbols of one place one: a call is one hit, whatever the names of its function.
fn without_aliases(mut places: Vec<(String, Address)>) -> Vec<(String, Address)> {
    places.sort_by(|(one, at), (other, there)| {
        at.cmp(there).then_with(|| rank(one).cmp(&rank(other))).then_with(|| one.cmp(other))
    });
    places.dedup_by_key(|(_, at)| *at);
    places.sort();
    places
}

fn site(point: &Point, object: &Rc<Object>, code: Code, symbol: &str, address: Address) -> Result<Site, &'static str> {
    let returning = point.has("return");
    let attachment = code.attach(object, address, returning)?;
    let suffix = match () {
        () if returning => ".return",
        () if point.has("call") => ".call",
        () if point.has("exported") => ".exported",
        () => "",
    };
    let context: Rc<dyn Context> = match described(object, address) {
        Some(id) => {
            let place = format!("{symbol} of {}", object.name());
            Rc::new(FunctionContext { returning, ..FunctionContext::at(object, id, place, address) })
        }
        None => Rc::new(SymbolContext { object: object.clone(), symbol: symbol.to_string(), returning }),
    };
    Ok(Site {
        point: format!("{}.function(\"{symbol}\"){suffix}", owner_of(object)),
        function: symbol.to_string(),
        module: object.name().to_string(),
        attachment,
        context,
    })
}

/// `.function(NUMBER)` and `.statement(NUMBER)` where debug information says nothing of that code, by the symbol table.
pub(super) fn at_address(
    point: &Point,
    number: u64,
    component: Span,
    object: &Rc<Object>,
    resolver: &mut Resolver,
) -> Result<Vec<Site>, PointError> {
    let refused = |why: &str| PointError::NotProbeable { component, name: format!("{number:#x}"), why: why.into() };
    let address = object.code_address(number).ok_or_else(|| refused("no code is there"))?;
    let absolute = point.has("absolute");
    if absolute && !resolver.is_guru() {
        return Err(PointError::Guru { component, what: "a probe at an address that debug information does not name" });
    }
    let around = object.containing(address).filter(|around| around.offset <= address.offset);
    let start = around.as_ref().map(|around| Address { offset: address.offset - around.offset, ..address });
    let statement = point.has("statement");
    let at = match start {
        Some(start) if !statement || start == address => start,
        _ if absolute => address,
        _ if !statement => return Err(refused("no function's symbol tells what is there")),
        _ => {
            return Err(refused(
                "without debug information nothing tells whether an instruction begins there; with .absolute, in guru mode, it is probed nevertheless",
            ));
        }
    };
    let code = Code::of(point, object, resolver)?;
    let near = around.or_else(|| object.near(address));
    let name = near.map(|near| near.symbol).unwrap_or_default();
    let is_static = || !object.functions_by_symbol(&name).iter().any(|symbol| symbol.at == at && symbol.global);
    if point.has("exported") && is_static() {
        return Err(refused(STATIC));
    }
    if !statement {
        let places = object.implementations(at).unwrap_or_else(|| vec![at]);
        let sites = places.into_iter().map(|at| site(point, object, code, &name, at).map_err(refused));
        let sites = sites.collect::<Result<Vec<Site>, PointError>>()?;
        return if sites.is_empty() { Err(refused(UNSHOWN)) } else { Ok(sites) };
    }
    let attachment = code.at(object, at).map_err(refused)?;
    let suffix = if absolute { ".absolute" } else { "" };
    Ok(vec![Site {
        point: format!("{}.statement({:#x}){suffix}", owner_of(object), at.offset),
        function: name.clone(),
        module: object.name().to_string(),
        attachment,
        context: Rc::new(SymbolContext { object: object.clone(), symbol: name, returning: false }),
    }])
}

/// The function of debug information that begins there, whatever its name.
fn described(object: &Object, address: Address) -> Option<FunctionId> {
    let debug = object.debug().ok()?;
    let named = object.functions_at(address);
    // A clone of a function: `f.isra.0`.
    let cloned = named.iter().filter_map(|name| Some(name.split_once('.')?.0.to_string()));
    let named: Vec<String> = named.iter().cloned().chain(cloned).collect();
    let plain = named.iter().filter_map(|name| Some(last_part(&demangled(name)?).to_string()));
    let candidates: Vec<String> = named.iter().cloned().chain(plain).collect();
    let functions = candidates
        .into_iter()
        .flat_map(|name| debug.find_functions(&FunctionPattern { name, file: None }).unwrap_or_default());
    functions.into_iter().find(|id| {
        let function = debug.function(*id).ok();
        function.is_some_and(|function| function.bodies.iter().any(|body| body.entry == address))
    })
}

/// A function of which nothing is known but where it begins.
pub(super) struct SymbolContext {
    /// The program or library.
    pub object: Rc<Object>,
    /// Its name.
    pub symbol: String,
    /// The probe is at its return.
    pub returning: bool,
}

impl Context for SymbolContext {
    fn variable(&self, name: &str) -> Result<TypedLocation, ContextError> {
        match name {
            "return" if !self.returning => Err(ContextError::NotReturn),
            "return" => Err(ContextError::returns_untold()),
            _ => Err(ContextError::Unknown),
        }
    }

    fn is_return(&self) -> bool {
        self.returning
    }

    fn has_variables(&self) -> bool {
        true
    }

    fn has_registers(&self) -> bool {
        true
    }

    fn object(&self) -> Option<Rc<Object>> {
        Some(self.object.clone())
    }

    fn place(&self) -> String {
        format!("{}, of which {} has no debug information", self.symbol, self.object.name())
    }
}
