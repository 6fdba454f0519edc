// SPDX-License-Identifier: GPL-2.0-or-later

//! What a site offers its handler: context variables and their locations.

use std::rc::Rc;

use crate::program::{Attachment, LongExpr};
use spile_debuginfo::target::Object;
use spile_debuginfo::{Address, FunctionId, TypeId};

/// One address, event or moment at which a probe point is attached.
#[derive(Clone)]
pub struct Site {
    /// Canonical spelling, as `-l` lists it.
    pub point: String,
    /// Probed function, or empty.
    pub function: String,
    /// Probed module, `kernel`, or empty.
    pub module: String,
    /// How the probe is attached there.
    pub attachment: Attachment,
    /// What the handler can use there.
    pub context: Rc<dyn Context>,
}

/// `$$name` and `$$system` of an event that the kernel lists below that name.
pub(super) fn event_text(word: &str, system: &str, event: &str) -> Option<String> {
    match word {
        "$$name" => Some(event.to_string()),
        "$$system" => Some(system.to_string()),
        _ => None,
    }
}

/// [`Context::readable`], with a search for each variable.
pub(super) fn each_readable(context: &(impl Context + ?Sized)) -> Vec<(String, TypedLocation)> {
    let names = context.parameters().into_iter().chain(context.locals());
    names.filter_map(|name| Some((name.clone(), context.variable(&name).ok()?))).collect()
}

/// A value or an object in the probed program, with its C type.
#[derive(Clone)]
pub struct TypedLocation {
    /// The object whose debug information has the type.
    pub object: Rc<Object>,
    /// Its C type, in that object.
    pub type_id: TypeId,
    /// Where it is.
    pub location: Location,
}

/// The location of a context variable, as an expression of the handler.
#[derive(Clone, Debug)]
pub enum Location {
    /// In memory at this address; of a bit-field, these bits of the storage that begins there.
    Memory {
        /// Where it begins.
        address: LongExpr,
        /// None: all of it.
        bits: Option<BitRange>,
    },
    /// In the low bytes of the word of struct pt_regs at this offset.
    Register {
        /// In bytes.
        offset: u32,
    },
    /// Computed: it cannot be written.
    Value(LongExpr),
    /// In parts, the first at the least significant end.
    Parts(Vec<Part>),
    /// A pointer that was optimised out, and the location of its target.
    Pointer(Box<Location>),
    /// Known for some callers of the function: reading it is a run-time error after a call by another one.
    KnownCallers {
        /// Whether one of these callers has made the call.
        known: LongExpr,
        /// Where it is then.
        location: Box<Location>,
    },
}

/// A part of an object; None: the compiler has optimised it out.
#[derive(Clone, Debug)]
pub struct Part {
    /// Where the part is.
    pub location: Option<Location>,
    /// Its length.
    pub bits: u64,
}

/// Bits from the least significant bit of the byte at the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitRange {
    /// The first bit, from the start of the storage.
    pub first: u64,
    /// How many.
    pub bits: u8,
}

/// Why a context variable is not available.
#[derive(Clone, Debug)]
pub enum ContextError {
    /// The probe has no context variables at all.
    None,
    /// No variable of that name is in scope there.
    Unknown,
    /// It is in scope but has no value at that address; a line for each known reason.
    NoValue(Vec<String>),
    /// The same, because the compiler has optimised it out: see [`Context::other_lines`].
    OptimizedOut,
    /// `$return` at a probe that is not at a return.
    NotReturn,
    /// `$return` of a function that returns nothing.
    Void,
    /// Debug information could not be read.
    DebugInfo(String),
}

impl ContextError {
    /// `$return` of a function of which only the address is known.
    pub fn returns_untold() -> ContextError {
        let why = "without debug information nothing tells its type: returnval() is the register that has it, for \
                   user_string(returnval()) and the like";
        ContextError::NoValue(vec![why.into()])
    }
}

/// A context variable that is a string: names of the builtins that read it, set it, and append to it, if allowed.
#[derive(Clone, Copy, Debug)]
pub struct TextVariable {
    /// The builtin that gives the text; None: it can only be written.
    pub read: Option<&'static str>,
    /// The builtin that replaces it; None: it cannot be written.
    pub set: Option<&'static str>,
    /// The builtin that appends to it; None: it cannot be written.
    pub append: Option<&'static str>,
}

/// What a site offers its handler.
pub trait Context {
    /// The variable `name` (without `$`), `return` among them.
    fn variable(&self, _name: &str) -> Result<TypedLocation, ContextError> {
        Err(ContextError::None)
    }

    /// Where a variable that has no value here has one: `line 451; available at lines 455-460`.
    fn other_lines(&self, _name: &str) -> Option<String> {
        None
    }

    /// Why a variable may not have the value that it should have there, though it has a place.
    fn doubt(&self, _name: &str) -> Option<String> {
        None
    }

    /// Parameters that appear in `$$parms`, in order.
    fn parameters(&self) -> Vec<String> {
        Vec::new()
    }

    /// Local variables in scope.
    fn locals(&self) -> Vec<String> {
        Vec::new()
    }

    /// The parameters and then the local variables that a handler can read, each with its location.
    fn readable(&self) -> Vec<(String, TypedLocation)> {
        each_readable(self)
    }

    /// The variable `name` (without `$`), if it is a string.
    fn text_variable(&self, _name: &str) -> Option<TextVariable> {
        None
    }

    /// A `$$` word specific to this kind of probe (with its dollars) whose value is known at compile time: `$$name`.
    fn text(&self, _name: &str) -> Option<String> {
        None
    }

    /// A condition for a hit (for a return probe: at the entry); otherwise it counts as filtered.
    fn guard(&self) -> Option<LongExpr> {
        None
    }

    /// A return probe: variables other than `$return` are saved at the function's entry.
    fn is_return(&self) -> bool {
        false
    }

    /// False: there are no `$` variables.
    fn has_variables(&self) -> bool {
        false
    }

    /// `$$vars` and the like list them.
    fn has_lists(&self) -> bool {
        self.has_variables()
    }

    /// The handler has the registers of the probed code.
    fn has_registers(&self) -> bool {
        false
    }

    /// Whether the probed instruction is not known, by which a program's variables are found.
    fn is_anywhere(&self) -> bool {
        false
    }

    /// The object whose types are used by casts that name no module.
    fn object(&self) -> Option<Rc<Object>> {
        None
    }

    /// For messages: `vfs_read (fs/read_write.c:450)`.
    fn place(&self) -> String {
        String::new()
    }

    /// Of a probe that is placed behind the first instructions of a function: how it is attached at the first one, and what the
    /// handler can use there.
    fn at_entry(&self) -> Option<(Attachment, Rc<dyn Context>)> {
        None
    }

    /// Of a probe at a return, by the registers at the entry, the address of `$return` where the registers at the return do not have it.
    fn result_at_entry(&self) -> Option<LongExpr> {
        None
    }

    /// The code at which the handler runs, if debug information covers it.
    fn code(&self) -> Option<CodePlace> {
        None
    }
}

/// A place in a function's code.
#[derive(Clone)]
pub struct CodePlace {
    /// The object that the code is in.
    pub object: Rc<Object>,
    /// The function in that object.
    pub function: FunctionId,
    /// Where in the object.
    pub address: Address,
}

/// The context of a probe without context variables.
pub struct NoContext;

impl Context for NoContext {}
