// SPDX-License-Identifier: GPL-2.0-or-later

//! The resolved program: what elaboration makes of scripts. Typed, spanned, nothing left to look up.
//!
//! Context variables are gone: `$x->f` has become fault-safe reads at computed addresses, `$return` a register,
//! `$x` in a return probe a value saved at entry. A tree, consumed once by `plan`.

mod attachment;
pub mod uses;

pub use crate::types::Type;
pub use attachment::{Attachment, Label, Mechanism, Registers, Runs, Value};
use spile_source::Span;
pub use spile_syntax::ast::{BinaryOp, Extractor, SortBy};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl $name {
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
id!(/** A pattern of `=~`: index into [`Program::regexes`]. */ RegexId);
id!(/** A value saved at a function's entry for its return probe: index into [`Probe::saved`]. */ SavedId);

#[derive(Debug, Default)]
pub struct Program {
    pub globals: Vec<Global>,
    /// Only functions that a probe reaches.
    pub functions: Vec<Function>,
    pub targets: Vec<Target>,
    /// One for each site, in the order of the script and, within a probe, of its points.
    pub probes: Vec<Probe>,
    /// Top-level `%{ %}` of the scripts, in order.
    pub embedded: Vec<EmbeddedC>,
    pub regexes: Vec<Regex>,
    /// Link-time address of `register_kprobe`, where a probe is at a link-time address of the kernel.
    pub anchor_address: Option<u64>,
    /// What wildcards matched and no probe can be at, each with the reason.
    pub left_out: Vec<String>,
    /// Guru mode: the code that probes are in, each function once.
    pub fingerprints: Vec<Fingerprint>,
    /// Where the script asks for source lines: of each object that can be told of, its name as a target's, and the table.
    pub lines: Vec<(String, Vec<u8>)>,
}

/// The code of a function as it was linked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// Of its first byte.
    pub place: Place,
    pub function: String,
    pub bytes: Vec<u8>,
    /// What may be something else in memory: first byte and length.
    pub patched: Vec<(u32, u32)>,
}

/// A pattern, as written and as the module runs it.
#[derive(Clone, Debug)]
pub struct Regex {
    pub pattern: Vec<u8>,
    pub automaton: Automaton,
}

#[derive(Clone, Debug)]
pub enum Automaton {
    /// Tells whether it matches.
    Plain(spile_regex::Plain),
    /// And where.
    Tagged(spile_regex::Tagged),
}

#[derive(Clone, Debug)]
pub struct EmbeddedC {
    pub text: String,
    pub span: Span,
    /// Globals that it says it uses.
    pub globals: Vec<(GlobalId, uses::Access)>,
    /// Arguments of the script function that it stands in, which it calls `STAP_ARG_NAME`.
    pub arguments: Vec<(String, LocalId)>,
    /// Arguments and result are the members of `THIS`.
    pub unmangled: bool,
}

#[derive(Clone, Debug)]
pub struct Global {
    pub name: String,
    /// Of the variable, or of each element of an array.
    pub holds: Holds,
    /// Types of the keys; none: no array.
    pub keys: Vec<Type>,
    /// Most elements, where the declaration says so.
    pub size: Option<u32>,
    /// A full array drops the element that was made first.
    pub wrap: bool,
    pub initial: Option<Constant>,
    pub span: Span,
}

impl Global {
    pub fn is_array(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Neither an array nor an aggregate: the type of its value.
    pub fn scalar(&self) -> Option<Type> {
        match self.holds {
            Holds::Value(ty) if !self.is_array() => Some(ty),
            _ => None,
        }
    }
}

/// What a variable or an array's elements hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    Value(Type),
    /// An aggregate: fed by `<<<`, read by extractors.
    Stats(Stats),
}

/// What an aggregate has to keep beside count, sum, least and greatest value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    pub variance: bool,
    /// Bits of additional precision of the variance, 0 to 62.
    pub shift: u8,
    pub histogram: Option<Histogram>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Histogram {
    Log,
    /// At most 126 buckets of `width` from `low` to `high`, and one below and one above.
    Linear {
        low: i64,
        high: i64,
        width: i64,
    },
}

/// Buckets of any histogram at the most.
pub const MAX_BUCKETS: u32 = 128;

/// An element of an array, or an aggregate that is none.
#[derive(Clone, Debug)]
pub struct Element {
    pub global: GlobalId,
    pub keys: Vec<Expr>,
    /// Of the global's name.
    pub span: Span,
}

/// Keys of which some may be any (`*`): None.
pub type Slice = Vec<Option<Expr>>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Constant {
    Long(i64),
    String(Vec<u8>),
}

#[derive(Clone, Debug)]
pub struct Local {
    pub name: String,
    pub ty: Type,
}

#[derive(Clone, Debug)]
pub struct Function {
    pub name: String,
    /// The first `parameters` locals are the parameters.
    pub parameters: usize,
    pub locals: Vec<Local>,
    /// None: it returns nothing (and 0 where a value is asked).
    pub returns: Option<Type>,
    /// The probe that it was copied for: its saved values are that probe's.
    pub site: Option<u32>,
    pub body: FunctionBody,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum FunctionBody {
    Script(Vec<Stmt>),
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
    pub path: String,
}

/// Where in a target: a link-time address of the kernel, or an anchor symbol of a module and the bytes after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub target: TargetId,
    /// None for the kernel.
    pub symbol: Option<String>,
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
    pub attachment: Attachment,
    pub locals: Vec<Local>,
    /// Values computed at the probed function's entry, for a return probe.
    pub saved: Vec<Expr>,
    pub body: Vec<Stmt>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Stmt {
    pub kind: StmtKind,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum StmtKind {
    Block(Vec<Stmt>),
    Expr(Expr),
    If {
        condition: Expr,
        then: Box<Stmt>,
        otherwise: Option<Box<Stmt>>,
    },
    /// `while` and `for`: `step` runs before each further test, also after `continue`.
    Loop {
        condition: Option<Expr>,
        step: Option<Expr>,
        body: Box<Stmt>,
    },
    Break,
    Continue,
    /// Leaves the handler.
    Next,
    /// The same, because of the probe point's own condition: the hit counts as filtered.
    Filter,
    Return(Option<Expr>),
    Try {
        body: Vec<Stmt>,
        message: Option<Variable>,
        handler: Vec<Stmt>,
    },
    /// Back to 0 or "".
    Delete(Variable),
    /// Elements whose keys are those.
    DeleteElements {
        global: GlobalId,
        keys: Slice,
    },
    /// All elements of an array, or all that an aggregate has seen.
    Clear(GlobalId),
    Foreach(Box<Foreach>),
}

#[derive(Clone, Debug)]
pub struct Foreach {
    pub over: Iterated,
    /// One for each key; a histogram has one, the bucket's number.
    pub keys: Vec<Variable>,
    pub value: Option<Variable>,
    /// Empty: all elements.
    pub slice: Slice,
    pub sort: Option<(SortBy, Order)>,
    /// How many elements at the most, evaluated once.
    pub limit: Option<Expr>,
    pub body: Stmt,
}

#[derive(Clone, Debug)]
pub enum Iterated {
    Array(GlobalId),
    Histogram(Element),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    Ascending,
    Descending,
}

/// Something with a name that holds a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variable {
    Local(LocalId),
    Global(GlobalId),
}

#[derive(Clone, Debug)]
pub struct Expr {
    pub kind: ExprKind,
    pub ty: Type,
    /// What a run-time error names; the operator's or word's place is in it.
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum ExprKind {
    Long(i64),
    String(Vec<u8>),
    Variable(Variable),
    /// Arithmetic, comparison (of both types), logic, concatenation.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    Negate(Box<Expr>),
    Not(Box<Expr>),
    Complement(Box<Expr>),
    Conditional(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `text =~ pattern`: 1 or 0.
    Matches {
        regex: RegexId,
        text: Box<Expr>,
    },
    Call(FunctionId, Vec<Expr>),
    /// One call into runtime-c.
    Builtin(&'static crate::builtin::Builtin, Vec<Expr>),
    /// `left = value`; the value of the whole is the new value.
    Assign(Box<LValue>, Box<Expr>),
    /// `left op= value`; `old`: the value of the whole is the one before (postfix `++`).
    Update {
        left: Box<LValue>,
        op: BinaryOp,
        value: Box<Expr>,
        old: bool,
    },
    Print(Box<Print>),
    /// The same to a string.
    Format(Box<Print>),
    /// Word of the probed registers at this byte offset of struct pt_regs.
    Register {
        offset: u32,
    },
    Saved(SavedId),
    /// A link-time address of the kernel, as it is where it runs; of a per-CPU variable, this CPU's copy.
    KernelAddress {
        address: u64,
        per_cpu: bool,
    },
    /// The same of a module: so many bytes behind the symbol, which only it has.
    ModuleAddress {
        module: String,
        symbol: String,
        offset: u64,
        per_cpu: bool,
    },
    /// Fault-safe read: zero-extended.
    Read {
        address: Box<Expr>,
        size: u8,
        user: bool,
    },
    /// Low `bits` of the value as a signed number.
    SignExtend(Box<Expr>, u8),
    /// `bits` bits from bit `first`, zero-extended.
    Bits {
        value: Box<Expr>,
        first: u8,
        bits: u8,
    },
    /// The object at the address as text, as `$x$$` prints it.
    Pretty {
        address: Box<Expr>,
        description: std::rc::Rc<spile_abi::format::Pretty>,
    },
    /// Of an absent element: 0 or "".
    Element(Element),
    /// `[keys] in array`.
    Contains {
        global: GlobalId,
        keys: Slice,
    },
    /// `aggregate <<< value`; the value of the whole is the right side's.
    Feed {
        aggregate: Element,
        value: Box<Expr>,
    },
    Extract {
        aggregate: Element,
        extractor: Extractor,
    },
    /// The chart of an aggregate's histogram, a string.
    Chart(Element),
    /// Count of a histogram's bucket.
    Bucket {
        aggregate: Element,
        index: Box<Expr>,
    },
    HasBucket {
        aggregate: Element,
        index: Box<Expr>,
    },
    EmbeddedC(EmbeddedC),
    /// Whether the embedded C just called said STAP_NEXT.
    TookNext,
}

#[derive(Clone, Debug)]
pub enum LValue {
    Variable(Variable),
    Element(Element),
    /// Guru mode. The low `size` bytes of the value go to the address.
    Memory {
        address: Expr,
        size: u8,
        field: Option<BitField>,
        signed: bool,
    },
    /// Guru mode. The word of struct pt_regs at this offset, whose low `size` bytes (with `signed`) are the value.
    Register {
        offset: u32,
        size: u8,
        signed: bool,
    },
}

/// Bits `first..first + bits` of the storage unit, counted from the least significant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BitField {
    pub first: u8,
    pub bits: u8,
}

/// One print, as a sequence of pieces.
#[derive(Clone, Debug)]
pub struct Print {
    pub pieces: Vec<PrintPiece>,
}

#[derive(Clone, Debug)]
pub enum PrintPiece {
    Literal(Vec<u8>),
    Directive { directive: Directive, width: Option<Expr>, precision: Option<Expr>, argument: Expr },
}

pub use spile_abi::format::Directive;
