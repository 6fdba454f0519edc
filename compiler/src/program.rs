//! The resolved program: what elaboration makes of scripts. Typed, spanned, nothing left to look up.
//!
//! Context variables are gone: `$x->f` has become fault-safe reads at computed addresses, `$return` a register,
//! `$x` in a return probe a value saved at entry. A tree, consumed once by [`crate::plan`].

use crate::source::Span;
pub use crate::syntax::ast::BinaryOp;

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
id!(/** A value saved at a function's entry for its return probe: index into [`Probe::saved`]. */ SavedId);

/// The two value types of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// 64 bits, two's complement.
    Long,
    /// Bytes, at most MAXSTRINGLEN - 1.
    String,
}

impl Type {
    /// As messages name it.
    pub fn name(self) -> &'static str {
        match self {
            Type::Long => "long",
            Type::String => "string",
        }
    }
}

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
    /// Link-time address of `register_kprobe`, where a probe is at a link-time address of the kernel.
    pub anchor_address: Option<u64>,
}

#[derive(Clone, Debug)]
pub struct EmbeddedC {
    pub text: String,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Global {
    pub name: String,
    pub ty: Type,
    pub initial: Option<Constant>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
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

/// How a probe is attached and when it runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Attachment {
    Begin { order: i64 },
    End { order: i64 },
    Error { order: i64 },
    Never,
    Kprobe(Place),
    /// `maxactive`: instances, 0 for the runtime's default.
    Kretprobe { place: Place, maxactive: u32 },
    /// Every `period` ns plus a random time up to `random` ns.
    Timer { period: u64, random: u64 },
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
    If { condition: Expr, then: Box<Stmt>, otherwise: Option<Box<Stmt>> },
    /// `while` and `for`: `step` runs before each further test, also after `continue`.
    Loop { condition: Option<Expr>, step: Option<Expr>, body: Box<Stmt> },
    Break,
    Continue,
    /// Leaves the handler.
    Next,
    Return(Option<Expr>),
    Try { body: Vec<Stmt>, message: Option<Variable>, handler: Vec<Stmt> },
    /// Back to 0 or "".
    Delete(Variable),
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
    Call(FunctionId, Vec<Expr>),
    /// One call into runtime-c.
    Builtin(&'static crate::builtin::Builtin, Vec<Expr>),
    /// `left = value`; the value of the whole is the new value.
    Assign(Box<LValue>, Box<Expr>),
    /// `left op= value`; `old`: the value of the whole is the one before (postfix `++`).
    Update { left: Box<LValue>, op: BinaryOp, value: Box<Expr>, old: bool },
    Print(Box<Print>),
    /// The same to a string.
    Format(Box<Print>),
    /// Word of the probed registers at this byte offset of struct pt_regs.
    Register { offset: u32 },
    Saved(SavedId),
    /// Fault-safe read: zero-extended.
    Read { address: Box<Expr>, size: u8, user: bool },
    /// Low `bits` of the value as a signed number.
    SignExtend(Box<Expr>, u8),
    /// `bits` bits from bit `first`, zero-extended.
    Bits { value: Box<Expr>, first: u8, bits: u8 },
    /// The object at the address as text, as `$x$$` prints it.
    Pretty { address: Box<Expr>, description: std::rc::Rc<spile_abi::format::Pretty> },
    EmbeddedC(EmbeddedC),
}

#[derive(Clone, Debug)]
pub enum LValue {
    Variable(Variable),
    /// Guru mode. The low `size` bytes of the value go to the address.
    Memory { address: Expr, size: u8, field: Option<BitField>, signed: bool },
    /// Guru mode. The word of struct pt_regs at this offset, whose low `size` bytes (with `signed`) are the value.
    Register { offset: u32, size: u8, signed: bool },
}

/// Bits `first..first + bits` of the storage unit, counted from the least significant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
