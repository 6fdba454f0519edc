// SPDX-License-Identifier: GPL-2.0-or-later

//! The resolved program: the result of elaboration. Typed, with spans, nothing left to look up.
//!
//! Context variables are gone: `$x->f` has become fault-safe reads at computed addresses, `$return` a register, `$x` in a
//! return probe a value saved at entry. A tree, consumed once by `plan`.

mod attachment;
pub mod command_text;
pub mod commands;
pub mod condition;
pub mod element_uses;
mod expression;
pub mod known_locals;
pub mod lead_in;
pub mod parts;
mod privilege;
pub mod uses;

pub use crate::types::Type;
pub use attachment::{Attachment, Label, Mechanism, Registers, Runs, Value};
pub use expression::{
    BinaryOp, BitField, Comparison, Expr, LongExpr, LongKind, LongPlace, StringExpr, StringKind, StringPlace,
};
pub use privilege::Privilege;
use spile_debuginfo::CodeSum;
use spile_source::Span;
pub use spile_syntax::ast::{Extractor, SortBy};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl $name {
            /// The position in the table that the id belongs to.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}
pub(crate) use id;

id!(/** A global variable: index into [`Program::globals`]. */ GlobalId);
id!(/** A function: index into [`Program::functions`]. */ FunctionId);
id!(/** A local variable or parameter: index into the locals of its function or handler. */ LocalId);
id!(/** An object that probes are in: index into [`Program::targets`]. */ TargetId);
id!(/** A program or library in user space: index into [`Program::programs`]. */ ProgramId);
id!(/** A pattern of `=~`: index into [`Program::regexes`]. */ RegexId);
id!(/** A value saved at a function's entry for its return probe: index into [`Probe::saved`]. */ SavedId);

/// The result of elaboration for all scripts of a session.
#[derive(Debug, Default)]
pub struct Program {
    /// Indexed by [`GlobalId`], including those that no probe uses.
    pub globals: Vec<Global>,
    /// Only functions that a probe reaches.
    pub functions: Vec<Function>,
    /// Indexed by [`TargetId`].
    pub targets: Vec<Target>,
    /// Indexed by [`ProgramId`].
    pub programs: Vec<UserProgram>,
    /// What looks for who catches an exception, in the processes of programs whose returns are probed.
    pub unwinders: Vec<UnwinderPlace>,
    /// Probes are for the session's own process and its descendants.
    pub follows: bool,
    /// Probes are for processes that begin.
    pub begins: bool,
    /// One for each site, in the order of the script and, within a probe, of its points.
    pub probes: Vec<Probe>,
    /// Top-level `%{ %}` of the scripts, in order.
    pub embedded: Vec<EmbeddedC>,
    /// Indexed by [`RegexId`].
    pub regexes: Vec<Regex>,
    /// Link-time address of `register_kprobe`, if a probe is at a link-time address of the kernel.
    pub anchor_address: Option<u64>,
    /// The places matched by wildcards where no probe is possible, each with the reason.
    pub left_out: Vec<String>,
    /// Guru mode: the code of the probed functions, each once.
    pub fingerprints: Vec<Fingerprint>,
    /// If the script needs source lines: for each object that has them, its name as in [`Target::name`] and the table, in
    /// the layout described in runtime-c/lines.c.
    pub lines: Vec<(String, Vec<u8>)>,
}

/// The code of a function as it was linked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// Where its first byte is.
    pub place: Place,
    /// Name, for messages.
    pub function: String,
    /// As in the object's file.
    pub bytes: Vec<u8>,
    /// Ranges that the kernel itself patches, so that they may differ in memory: first byte and length, ascending.
    pub patched: Vec<(u32, u32)>,
}

/// A pattern, as written and as compiled.
#[derive(Clone, Debug)]
pub struct Regex {
    /// Source text of the pattern.
    pub pattern: Vec<u8>,
    /// The tables for the runtime.
    pub automaton: Automaton,
}

/// A pattern compiled to the tables that runtime-c/regex.c interprets.
#[derive(Clone, Debug)]
pub enum Automaton {
    /// Tells whether it matches.
    Plain(spile_regex::Plain),
    /// Tells that, and where its groups match.
    Tagged(spile_regex::Tagged),
}

/// Embedded C, `%{ ... %}`.
#[derive(Clone, Debug)]
pub struct EmbeddedC {
    /// The C between `%{` and `%}`, as written.
    pub text: String,
    /// Where it is in the source.
    pub span: Span,
    /// Globals that its comments declare as used, and how.
    pub globals: Vec<(GlobalId, uses::Access)>,
    /// Arguments of the enclosing script function that it uses as `STAP_ARG_NAME`.
    pub arguments: Vec<(String, LocalId)>,
    /// Arguments and result are the members of `THIS`.
    pub unmangled: bool,
}

/// A global variable of a script or of the tapset.
#[derive(Clone, Debug)]
pub struct Global {
    /// As the script spells it.
    pub name: String,
    /// What the variable, or each element of the array, contains.
    pub contents: Contents,
    /// Types of the keys; empty: not an array.
    pub keys: Vec<Type>,
    /// Most elements; None: the declaration gives no size.
    pub size: Option<u32>,
    /// A full array drops its oldest element.
    pub wrap: bool,
    /// The value that the declaration gives; None: 0 or "".
    pub initial: Option<Constant>,
    /// The declaration.
    pub span: Span,
}

impl Global {
    /// Whether it has keys.
    pub fn is_array(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Neither an array nor an aggregate: the type of its value.
    pub fn scalar(&self) -> Option<Type> {
        match self.contents {
            Contents::Value(ty) if !self.is_array() => Some(ty),
            _ => None,
        }
    }
}

/// What a variable or an array's elements contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// A number or a string.
    Value(Type),
    /// An aggregate: fed by `<<<`, read by extractors.
    Stats(Stats),
}

/// What an aggregate records besides count, sum, least and greatest value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// An extractor asks for the variance.
    pub variance: bool,
    /// Bits of additional precision of the variance, 0 to 62.
    pub shift: u8,
    /// The one histogram that an extractor asks for.
    pub histogram: Option<Histogram>,
}

/// The buckets of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Histogram {
    /// `@hist_log`: buckets by powers of two, of both signs.
    Log,
    /// At most 126 buckets of `width` from `low` to `high`, and one below and one above.
    Linear {
        /// Where the first bucket begins.
        low: i64,
        /// No bucket begins above it.
        high: i64,
        /// Width of a bucket, at least 1.
        width: i64,
    },
}

/// Most buckets that a histogram can have.
pub const MAX_BUCKETS: u32 = 128;

/// An element of an array, or an aggregate that is not an array.
#[derive(Clone, Debug)]
pub struct Element {
    /// The array or aggregate.
    pub global: GlobalId,
    /// One for each key of the array; empty for an aggregate that is not an array.
    pub keys: Vec<Expr>,
    /// The global's name.
    pub span: Span,
}

/// Keys of which some may be any (`*`): None.
pub type Slice = Vec<Option<Expr>>;

/// A value known when the script is compiled.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Constant {
    /// A number.
    Long(i64),
    /// The bytes of a string, without a terminating NUL.
    String(Vec<u8>),
}

/// A local variable or parameter of a function or handler.
#[derive(Clone, Debug)]
pub struct Local {
    /// As the script spells it; the lowering adds names of its own.
    pub name: String,
    /// The type that inference found.
    pub ty: Type,
}

/// A function of a script, or a copy of one compiled for one probe.
#[derive(Clone, Debug)]
pub struct Function {
    /// As the script spells it; overloads and copies share it.
    pub name: String,
    /// The first `parameters` locals are the parameters.
    pub parameters: usize,
    /// Indexed by [`LocalId`].
    pub locals: Vec<Local>,
    /// None: it returns nothing, and 0 is used as its value.
    pub returns: Option<Type>,
    /// The probe that it was copied for: its saved values are that probe's.
    pub site: Option<u32>,
    /// The code that a call runs.
    pub body: FunctionBody,
    /// The definition that it comes from.
    pub span: Span,
}

/// The body of a function.
#[derive(Clone, Debug)]
pub enum FunctionBody {
    /// Statements of the language, in order.
    Script(Vec<Stmt>),
    /// C that writes its result itself.
    EmbeddedC(EmbeddedC),
}

/// A kernel or module with probes in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Module name with `_` for `-`, or empty for the kernel.
    pub name: String,
    /// GNU build-id; empty if the object has none.
    pub build_id: Vec<u8>,
    /// Kernel: link-time address of the build-id's bytes.
    pub build_id_address: Option<u64>,
    /// Path of the object's file on the machine that compiles.
    pub path: String,
}

/// A program or library in user space with probes in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserProgram {
    /// Path of its file on the machine where the script runs.
    pub path: String,
    /// GNU build-id; empty if the file has none.
    pub build_id: Vec<u8>,
    /// Of a file without one: its code. None: any file of that path will do.
    pub code: Option<CodeSum>,
    /// No probe of the script is in it: only what unwinds stacks ([`UnwinderPlace`]).
    pub unwinds_only: bool,
}

/// A function of a program or library that goes from caller to caller, or that is called where an exception has been caught.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnwinderPlace {
    /// The file.
    pub program: ProgramId,
    /// Where in it the function begins.
    pub offset: u64,
    /// An exception has been caught.
    pub catches: bool,
}

/// Where in a target: a link-time address of the kernel, or an anchor symbol of a module and the bytes after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The kernel or module.
    pub target: TargetId,
    /// None for the kernel.
    pub symbol: Option<String>,
    /// Link-time address of the kernel, or bytes from the symbol on; wraps around for places before the symbol.
    pub address: u64,
}

/// One probe site with its own copy of the handler.
#[derive(Clone, Debug)]
pub struct Probe {
    /// Canonical spelling of the probe point (pp(), listings).
    pub point: String,
    /// As the script wrote it (pn()).
    pub script_point: String,
    /// Probed function, or empty.
    pub function: String,
    /// Probed module, `kernel`, or empty.
    pub module: String,
    /// How it is attached and when it runs.
    pub attachment: Attachment,
    /// Indexed by [`LocalId`].
    pub locals: Vec<Local>,
    /// Values computed at the probed function's entry, for a return probe.
    pub saved: Vec<Expr>,
    /// Statements of the handler with those of the aliases, in order.
    pub body: Vec<Stmt>,
    /// The handler in the script.
    pub span: Span,
}

/// A statement.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// Which one, with its parts.
    pub kind: StmtKind,
    /// The whole statement.
    pub span: Span,
}

/// The statements of the language.
#[derive(Clone, Debug)]
pub enum StmtKind {
    /// `{ ... }`.
    Block(Vec<Stmt>),
    /// An expression whose value is not used.
    Expr(Expr),
    /// `if (condition) then else otherwise`.
    If {
        /// Other than 0: true.
        condition: LongExpr,
        /// Runs if the condition is true.
        then: Box<Stmt>,
        /// Runs if it is not.
        otherwise: Option<Box<Stmt>>,
    },
    /// `while` and `for`: `step` runs before each test but the first, also after `continue`.
    Loop {
        /// Tested before each iteration; None: always true.
        condition: Option<LongExpr>,
        /// Its value is not used.
        step: Option<Expr>,
        /// One iteration.
        body: Box<Stmt>,
    },
    /// Leaves the innermost loop.
    Break,
    /// Continues with the next iteration of the innermost loop.
    Continue,
    /// Leaves the handler.
    Next,
    /// Leaves the handler because the probe point's own condition does not hold: the hit counts as filtered.
    Filter,
    /// Leaves the function; with a value where the function has a type.
    Return(Option<Expr>),
    /// `try { body } catch (message) { handler }`.
    Try {
        /// Run-time errors in it, or in functions that it calls, are caught.
        body: Vec<Stmt>,
        /// A string variable that takes the error's message.
        message: Option<Variable>,
        /// Runs after an error was caught.
        handler: Vec<Stmt>,
    },
    /// Sets a variable to 0 or "".
    Delete(Variable),
    /// Deletes the elements with these keys.
    DeleteElements {
        /// The array.
        global: GlobalId,
        /// One for each key; None: any.
        keys: Slice,
    },
    /// Deletes all elements of an array, or forgets all values of an aggregate.
    Clear(GlobalId),
    /// `foreach`.
    Foreach(Box<Foreach>),
}

/// A `foreach` loop.
#[derive(Clone, Debug)]
pub struct Foreach {
    /// What it iterates over.
    pub over: Iterated,
    /// One for each key; a histogram has one, the bucket's number.
    pub keys: Vec<Variable>,
    /// Takes the value of the element, `foreach (value = key in array)`.
    pub value: Option<Variable>,
    /// Empty: all elements.
    pub slice: Slice,
    /// Sort key and direction; None: in undefined order.
    pub sort: Option<(SortBy, Order)>,
    /// Most elements, evaluated once.
    pub limit: Option<LongExpr>,
    /// One iteration.
    pub body: Stmt,
}

/// What a `foreach` iterates over.
#[derive(Clone, Debug)]
pub enum Iterated {
    /// The elements of an array.
    Array(GlobalId),
    /// The buckets of an aggregate's histogram.
    Histogram(Element),
}

/// Direction of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// The smallest first, `+`.
    Ascending,
    /// The largest first, `-`.
    Descending,
}

/// A named variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Variable {
    /// Of the function or handler.
    Local(LocalId),
    /// Of the program; never an array or an aggregate.
    Global(GlobalId),
}

/// One print, as a sequence of pieces.
#[derive(Clone, Debug)]
pub struct Print {
    /// Printed one after the other.
    pub pieces: Vec<PrintPiece>,
}

/// A part of a print's output.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "a print has about as many directives as literals: boxes save nothing")]
pub enum PrintPiece {
    /// These bytes.
    Literal(Vec<u8>),
    /// A value, formatted.
    Directive {
        /// How it is formatted.
        directive: Directive,
        /// The number for the width `*`.
        width: Option<LongExpr>,
        /// The number for the precision `*`.
        precision: Option<LongExpr>,
        /// The value.
        argument: Expr,
        /// Its name in recordings: as the script spells it; empty where it does not.
        name: String,
    },
}

pub use spile_abi::format::Directive;
