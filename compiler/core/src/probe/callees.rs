// SPDX-License-Identifier: GPL-2.0-or-later

//! `.callee("g")`, `.callees`, `.callees(N)`: the functions that a function calls, but only when this function calls them.
//!
//! A call that is not inlined is probed at the call instruction, where the arguments are in their registers already: calls
//! from elsewhere cost nothing, and modules need no address at run time. What a callee calls in turn is probed in that
//! code, and counts if the callee's return address is that of one of the calls found: that is the handler's guard. The
//! return of a callee is a kretprobe with the same guard at its entry.
//!
//! A callee requested by name is also found in inlined code, and where the function calls it through a pointer: then it is
//! probed at its own entry, and counts if its return address is that of such a call.
//!
//! With `-DSTAP_CALLEE_MATCHALL` a callee counts whoever calls it, and is probed once, at its own entry; so the target of a
//! tail call is a callee too.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::code::Code;
use super::error::UnplacedError;
use super::function::{FunctionContext, owner_of, quoted};
use super::location::{before_call, called_from, locate};
use super::{CodePlace, Context, ContextError, PointError, Resolver, Site, TypedLocation};
use crate::program::{Attachment, LongExpr};
use spile_base::glob;
use spile_debuginfo::target::Object;
use spile_debuginfo::{Address, Call, Function, FunctionId, FunctionPattern, InlinedCode};
use spile_source::Span;

/// Which callees a point selects.
pub(super) struct CalleeSelection {
    /// `NAME` or `NAME@FILE`, with wildcards.
    pub pattern: String,
    /// Depth: 1 for callees of the function itself only.
    pub depth: usize,
    /// `.call`: no inlined copies.
    pub only_calls: bool,
    /// `.return`: their returns.
    pub returning: bool,
    /// The component to name in an error if there are too many.
    pub component: Span,
}

impl CalleeSelection {
    /// A name is given, rather than all callees.
    fn is_named(&self) -> bool {
        self.pattern != "*"
    }

    /// What follows the callee in a probe point.
    fn suffix(&self) -> &'static str {
        match (self.returning, self.only_calls) {
            (true, _) => ".return",
            (false, true) => ".call",
            (false, false) => "",
        }
    }

    fn fits(&self, callee: &Function) -> bool {
        let (name, file) =
            self.pattern.split_once('@').map_or((&*self.pattern, None), |(name, file)| (name, Some(file)));
        // As in a listing: `g@fs/x.c:12`.
        let file = file.map(|file| file.split(':').next().unwrap_or(file));
        glob::matches(name, &callee.name) && file.is_none_or(|file| callee.file.ends_with(file))
    }
}

/// Most sites of one point with a depth. In Linux 6.1 `do_exit` has 3,781 at depth 5, which take 0.3 s; at depth 10 the search ends
/// here, in 0.9 s.
const MAX_SITES: usize = 20_000;

/// A search for the callees of functions.
pub(super) struct Callees<'o, 'r, 'k> {
    object: &'o Rc<Object>,
    code: Code,
    resolver: &'r mut Resolver<'k>,
    selection: &'o CalleeSelection,
    /// The sites found so far.
    pub sites: Vec<Site>,
    /// Names of callees that do not match.
    pub near: Vec<String>,
    /// A callee matches whose return is requested, and is inlined.
    pub only_inlined: bool,
    /// Callees probed at their own entries already.
    entered: HashSet<FunctionId>,
    functions: HashMap<FunctionId, Rc<Function>>,
    calls: HashMap<FunctionId, Rc<Vec<Call>>>,
}

/// The calls that lead to some code.
#[derive(Clone)]
struct Path {
    /// `function("f@x.c:1").callee("g@x.c:2")`.
    spelling: String,
    /// Name of the last function.
    caller: String,
    /// Return addresses of the frames on the stack, innermost first: each may be one of several. An inlined callee has no
    /// frame of its own.
    frames: Vec<Rc<Vec<Address>>>,
}

impl<'o, 'r, 'k> Callees<'o, 'r, 'k> {
    /// A search in one object that has found nothing yet.
    pub fn new(
        object: &'o Rc<Object>,
        code: Code,
        resolver: &'r mut Resolver<'k>,
        selection: &'o CalleeSelection,
    ) -> Callees<'o, 'r, 'k> {
        Callees {
            object,
            code,
            resolver,
            selection,
            sites: Vec::new(),
            near: Vec::new(),
            only_inlined: false,
            entered: HashSet::new(),
            functions: HashMap::new(),
            calls: HashMap::new(),
        }
    }

    /// Adds the sites of one function.
    pub fn of(&mut self, id: FunctionId, function: &Function) -> Result<(), UnplacedError> {
        let spelling = format!("function(\"{}\")", placed(function));
        let path = Path { spelling, caller: function.name.clone(), frames: Vec::new() };
        let calls = self.object.debug()?.calls(id)?;
        let before = self.sites.len();
        self.walk(&path, &calls, self.selection.depth)?;
        if self.sites.len() == before && !self.only_inlined {
            self.add_through_pointers(&path, id)?;
        }
        Ok(())
    }

    /// The functions with the requested name, where the function may call them through pointers.
    fn add_through_pointers(&mut self, path: &Path, id: FunctionId) -> Result<(), UnplacedError> {
        let (name, _) = self.selection.pattern.split_once('@').unwrap_or((&self.selection.pattern, ""));
        if glob::is_pattern(name) {
            return Ok(());
        }
        let debug = self.object.debug()?;
        let returns = Rc::new(debug.returns_of_unknown_calls(id)?);
        if returns.is_empty() {
            return Ok(());
        }
        for callee in debug.find_functions(&FunctionPattern { name: name.to_string(), file: None })? {
            let function = self.function(callee)?;
            if self.selection.fits(&function) {
                self.add_guarded(path, callee, &function, &returns)?;
            }
        }
        Ok(())
    }

    fn walk(&mut self, path: &Path, calls: &[Call], depth: usize) -> Result<(), UnplacedError> {
        // A callee has as many frames as one, however often it is called here.
        let mut called: HashMap<FunctionId, Vec<Address>> = HashMap::new();
        let any_caller = self.resolver.any_caller();
        let counts = |call: &&Call| any_caller || !call.tail;
        for call in calls.iter().filter(counts).filter(|call| call.inlined.is_none()) {
            called.entry(call.callee).or_default().push(call.returns_to);
        }
        let called: HashMap<FunctionId, Rc<Vec<Address>>> =
            called.into_iter().map(|(id, at)| (id, Rc::new(at))).collect();
        let mut entered: Vec<FunctionId> = Vec::new();
        for call in calls.iter().filter(counts) {
            let callee = self.function(call.callee)?;
            if let (Some(copy), true) = (call.inlined, self.selection.is_named()) {
                let spelling = format!("{}.callee(\"{}\")", path.spelling, placed(&callee));
                let inner = Path { spelling, caller: callee.name.clone(), frames: path.frames.clone() };
                let calls = self.calls_of_copy(copy)?;
                self.walk(&inner, &calls, depth)?;
            }
            if !self.selection.fits(&callee) || (self.selection.only_calls && call.inlined.is_some()) {
                self.near.push(callee.name.clone());
                continue;
            }
            let first = !entered.contains(&call.callee);
            entered.push(call.callee);
            let returns = called.get(&call.callee);
            match (self.selection.returning, returns) {
                (_, Some(_)) if any_caller && call.inlined.is_none() => self.add_entries(path, call.callee, &callee)?,
                (false, _) => self.add_call(path, call, &callee)?,
                (true, Some(returns)) if first => self.add_guarded(path, call.callee, &callee, returns)?,
                (true, _) => self.only_inlined |= call.inlined.is_some(),
            }
            if depth <= 1 {
                continue;
            }
            let spelling = format!("{}.callee(\"{}\")", path.spelling, placed(&callee));
            let mut inner = Path { spelling, caller: callee.name.clone(), frames: path.frames.clone() };
            match (call.inlined, returns) {
                (Some(copy), _) => {
                    let calls = self.calls_of_copy(copy)?;
                    self.walk(&inner, &calls, depth - 1)?;
                }
                (None, Some(returns)) if first => {
                    if !any_caller {
                        inner.frames.insert(0, returns.clone());
                    }
                    let calls = self.calls_of_bodies(call.callee)?;
                    self.walk(&inner, &calls, depth - 1)?;
                }
                (None, _) => {}
            }
        }
        Ok(())
    }

    fn function(&mut self, id: FunctionId) -> Result<Rc<Function>, UnplacedError> {
        if let Some(function) = self.functions.get(&id) {
            return Ok(function.clone());
        }
        let function = Rc::new(self.object.debug()?.function(id)?);
        self.functions.insert(id, function.clone());
        Ok(function)
    }

    fn calls_of_bodies(&mut self, id: FunctionId) -> Result<Rc<Vec<Call>>, UnplacedError> {
        if let Some(calls) = self.calls.get(&id) {
            return Ok(calls.clone());
        }
        let calls = Rc::new(self.object.debug()?.calls_of_bodies(id)?);
        self.calls.insert(id, calls.clone());
        Ok(calls)
    }

    fn calls_of_copy(&self, copy: InlinedCode) -> Result<Vec<Call>, UnplacedError> {
        Ok(self.object.debug()?.calls_of_copy(copy)?)
    }

    fn add_call(&mut self, path: &Path, call: &Call, callee: &Function) -> Result<(), UnplacedError> {
        let inlined = call.inlined.is_some();
        // Without a body here the callee belongs to another object, and its variables are not known.
        let address = if inlined { Some(call.address) } else { callee.bodies.first().map(|body| body.entry) };
        let Some(address) = address else { return Ok(()) };
        let guard = match self.object.debug()?.return_address(call.address)? {
            _ if path.frames.is_empty() => None,
            Some(at) => called_from(&at, &path.frames, self.object),
            None => return Ok(()),
        };
        if guard.is_none() && !path.frames.is_empty() {
            return Ok(());
        }
        let context =
            CalleeContext { at: self.context(path, call.callee, callee, address), before_call: !inlined, guard };
        let attachment = self.attach(call.address, &context.at, false)?;
        let called = if self.selection.only_calls { ".call" } else { "" };
        self.add(path, callee, called, attachment, context)
    }

    /// The callee, whoever calls it.
    fn add_entries(&mut self, path: &Path, id: FunctionId, callee: &Function) -> Result<(), UnplacedError> {
        if !self.entered.insert(id) {
            return Ok(());
        }
        let returning = self.selection.returning;
        let suffix = self.selection.suffix();
        for body in &callee.bodies {
            let mut at = self.context(path, id, callee, body.entry);
            at.returning = returning;
            let context = CalleeContext { at, before_call: false, guard: None };
            let attachment = self.attach(body.entry, &context.at, returning)?;
            self.add(path, callee, suffix, attachment, context)?;
        }
        Ok(())
    }

    /// The callee at its entry or return, if it returns to one of these places.
    fn add_guarded(
        &mut self,
        path: &Path,
        id: FunctionId,
        callee: &Function,
        returns: &Rc<Vec<Address>>,
    ) -> Result<(), UnplacedError> {
        let returning = self.selection.returning;
        let suffix = self.selection.suffix();
        for body in &callee.bodies {
            let Some(at) = self.object.debug()?.return_address(body.entry)? else { continue };
            let frames: Vec<_> = std::iter::once(returns).chain(&path.frames).cloned().collect();
            let Some(guard) = called_from(&at, &frames, self.object) else { continue };
            let mut at = self.context(path, id, callee, body.entry);
            at.returning = returning;
            let context = CalleeContext { at, before_call: false, guard: Some(guard) };
            let attachment = self.attach(body.entry, &context.at, returning)?;
            self.add(path, callee, suffix, attachment, context)?;
        }
        Ok(())
    }

    fn context(&self, path: &Path, id: FunctionId, callee: &Function, address: Address) -> FunctionContext {
        let place = format!("{} ({}:{}), called by {}", callee.name, callee.file, callee.line, path.caller);
        FunctionContext::at(self.object, id, place, address)
    }

    /// How a probe is attached there; None and a line for `-v` where it cannot.
    fn attach(
        &mut self,
        address: Address,
        at: &FunctionContext,
        returning: bool,
    ) -> Result<Option<Attachment>, UnplacedError> {
        match self.code.attach(self.object, address, returning) {
            Ok(attachment) => Ok(Some(attachment)),
            Err(why) => {
                self.resolver.skip(&at.place, why);
                Ok(None)
            }
        }
    }

    fn add(
        &mut self,
        path: &Path,
        callee: &Function,
        suffix: &str,
        attachment: Option<Attachment>,
        context: CalleeContext,
    ) -> Result<(), UnplacedError> {
        let Some(attachment) = attachment else { return Ok(()) };
        if self.sites.len() >= MAX_SITES {
            let (component, name) = (self.selection.component, path.spelling.clone());
            let why = format!("it has more than {MAX_SITES} calls to that depth: ask for a smaller one");
            return Err(UnplacedError::Point(PointError::NotProbeable { component, name, why }));
        }
        let point = format!("{}.{}.callee(\"{}\"){suffix}", owner_of(self.object), path.spelling, placed(callee));
        let module = if self.object.is_kernel() { "kernel".to_string() } else { self.object.name().to_string() };
        let function = callee.name.clone();
        self.sites.push(Site { point, function, module, attachment, context: Rc::new(context) });
        Ok(())
    }
}

fn placed(function: &Function) -> String {
    format!("{}@{}:{}", quoted(&function.name), function.file, function.line)
}

/// The callee's variables: at its entry or inlined copy, or at the instruction that is about to call it.
struct CalleeContext {
    at: FunctionContext,
    before_call: bool,
    guard: Option<LongExpr>,
}

impl Context for CalleeContext {
    fn variable(&self, name: &str) -> Result<TypedLocation, ContextError> {
        if !self.before_call {
            return self.at.variable(name);
        }
        let object = &self.at.object;
        let found = self.at.found(name)?;
        let location = locate(&before_call(&found.location, object.word()), object)
            .map_err(|why| ContextError::NoValue(vec![why]))?;
        Ok(TypedLocation { object: object.clone(), type_id: found.type_id, location })
    }

    fn other_lines(&self, name: &str) -> Option<String> {
        self.at.other_lines(name)
    }

    fn parameters(&self) -> Vec<String> {
        self.at.parameters()
    }

    fn locals(&self) -> Vec<String> {
        self.at.locals()
    }

    fn is_return(&self) -> bool {
        self.at.is_return()
    }

    fn has_registers(&self) -> bool {
        true
    }

    fn has_variables(&self) -> bool {
        true
    }

    fn object(&self) -> Option<Rc<Object>> {
        self.at.object()
    }

    fn place(&self) -> String {
        self.at.place()
    }

    fn code(&self) -> Option<CodePlace> {
        self.at.code()
    }

    fn guard(&self) -> Option<LongExpr> {
        self.guard.clone()
    }
}
