// SPDX-License-Identifier: GPL-2.0-or-later

//! Syntax errors as facts, and the diagnostic of each.

use super::environment::CONDITION_WORDS;
use spile_source::Span;
use spile_source::diagnostic::{Code, Diagnostic, foreign, suggest};

/// Reading a file stops after this many errors.
pub const MAX_PROBLEMS: usize = 100;

/// Why some bytes are not a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LexicalError {
    /// A string without its closing quote.
    UnclosedString,
    /// `/*` without `*/`.
    UnclosedComment,
    /// `%{` without `%}`.
    UnclosedEmbeddedC,
    /// `%}` without `%{`.
    StrayEmbeddedEnd,
    /// A number that is malformed or out of range.
    BadNumber(String),
    /// More than two `$` after a name.
    TooManyDollars,
    /// A character that starts no token.
    Character(String),
}

/// What is wrong with a `@define`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefinitionProblem {
    /// The name is missing.
    Name,
    /// The name is `define`.
    Reserved,
    /// The macro's name or parameters are not followed by `%(`.
    Body(String),
    /// A parameter that is not a name.
    Parameter,
    /// Two parameters have this name.
    ParameterTwice(String),
    /// The parameter list is not closed.
    ParametersUnclosed,
    /// The body of this macro is not closed.
    Unclosed(String),
    /// A definition inside the body of another macro, or made by one.
    Nested,
}

/// What is wrong with the condition of a `%( %? %)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionProblem {
    /// The left operand cannot be compared.
    Left,
    /// The comparison is missing.
    Operator,
    /// Only `==` and `!=` are allowed.
    EqualityOnly,
    /// The right operand must be a string.
    RightString,
    /// The right operand must be a number.
    RightNumber,
    /// The right operand must be a string or a number.
    RightConfig,
    /// `CONFIG_X > 5` of a configuration option that is not a number.
    NoNumber,
    /// `<` or the like with a string that has wildcards.
    PatternOrdered,
    /// `guru_mode` is 0 or 1.
    NotASwitch,
    /// `&&`, `||` or `%?` is missing.
    End,
}

/// A token that the grammar did not expect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unexpected {
    /// Its span.
    pub span: Span,
    /// As messages name it; `None` at the end of the script.
    pub found: Option<String>,
    /// The token before, and its span.
    pub after: Option<(String, Span)>,
    /// "an expression", "`)`".
    pub expected: Vec<String>,
    /// What the user may have meant.
    pub hint: Option<&'static str>,
}

/// A mistake in the text of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyntaxError {
    /// Some bytes are not a token.
    Lexical {
        /// The reason.
        error: LexicalError,
        /// Its span.
        span: Span,
    },
    /// The file is too long.
    TooLong {
        /// Its span.
        span: Span,
    },
    /// `$N` with fewer arguments.
    ArgumentOutOfRange {
        /// Its span.
        span: Span,
        /// The number.
        number: u32,
        /// It is `@1`, not `$1`.
        quoted: bool,
        /// The number given.
        given: usize,
    },
    /// A script argument refers to script arguments.
    ArgumentNested {
        /// Its span.
        span: Span,
    },
    /// No macro or operator of this name.
    UnknownMacro {
        /// The name.
        name: String,
        /// Its span.
        span: Span,
        /// The known names.
        candidates: Vec<String>,
        /// An operator that is newer than the version given by `--compatible`.
        since: Option<&'static str>,
        /// It is used as a variable: `@name[...]`, `@name = ...`.
        map: bool,
    },
    /// A macro call with the wrong number of arguments. `given` is `None` without parentheses.
    MacroArguments {
        /// The name.
        name: String,
        /// Its span.
        span: Span,
        /// Its parameters.
        parameters: Vec<String>,
        /// The number given.
        given: Option<usize>,
        /// Where it is defined.
        defined: Span,
    },
    /// The arguments of a macro call are not closed.
    MacroArgumentsUnclosed {
        /// The name.
        name: String,
        /// Its span.
        span: Span,
    },
    /// A macro calls itself.
    MacroRecursion {
        /// The name.
        name: String,
        /// Its span.
        span: Span,
        /// Where it is defined.
        defined: Span,
    },
    /// A `@define` is malformed.
    MacroDefinition {
        /// Its span.
        span: Span,
        /// The reason.
        problem: DefinitionProblem,
    },
    /// Two macros of one name.
    MacroRedefined {
        /// The name.
        name: String,
        /// Its span.
        span: Span,
        /// The span of the first one.
        first: Span,
    },
    /// A warning.
    MacroHidesOperator {
        /// The name.
        name: String,
        /// Its span.
        span: Span,
    },
    /// Macros and arguments expand to too much text.
    ExpansionTooLarge {
        /// Its span.
        span: Span,
    },
    /// A macro library contains something else.
    NotAMacro {
        /// Its span.
        span: Span,
        /// What is found there, as messages name it.
        found: String,
    },
    /// A preprocessor condition is malformed.
    Condition {
        /// Its span.
        span: Span,
        /// What is found there, as messages name it.
        found: String,
        /// The reason.
        problem: ConditionProblem,
        /// Where it is opened.
        open: Span,
        /// It follows an operand.
        after_operand: bool,
    },
    /// `%(` without `%)`.
    ConditionalUnclosed {
        /// Its span.
        span: Span,
    },
    /// `%?`, `%:` or `%)` without `%(`.
    ConditionalStray {
        /// Its span.
        span: Span,
        /// The operator.
        op: &'static str,
    },
    /// Something at the top level that is not an item.
    ExpectedItem {
        /// Its span.
        span: Span,
        /// What is found there, as messages name it.
        found: String,
        /// What the user may have meant.
        hint: Option<String>,
    },
    /// `}` without `{`.
    StrayBrace {
        /// Its span.
        span: Span,
    },
    /// A `{` that is not closed. `stopped` is what follows where the brace is missing; `None` at the end of the script.
    UnclosedBody {
        /// Where it is opened.
        open: Span,
        /// What follows where it should be closed.
        stopped: Option<(Span, String)>,
    },
    /// A token that the grammar did not expect.
    Unexpected(Unexpected),
    /// Statements or expressions are nested too deeply.
    TooDeep {
        /// Its span.
        span: Span,
        /// The limit.
        limit: u16,
    },
    /// Braces make too many probe points.
    TooManyPoints {
        /// Its span.
        span: Span,
        /// The limit.
        limit: usize,
    },
    /// It cannot be the name of an alias.
    AliasName {
        /// Its span.
        span: Span,
    },
    /// An alias with two handlers of one kind.
    SecondHandler {
        /// Its span.
        span: Span,
        /// The alias is defined with `+=`.
        appends: bool,
    },
    /// The size of an array is out of range.
    ArraySize {
        /// Its span.
        span: Span,
        /// The name.
        name: String,
    },
    /// An array with an initial value.
    ArrayInitial {
        /// Its span.
        span: Span,
        /// The name.
        name: String,
    },
    /// `foreach` with two orders.
    SortTwice {
        /// Its span.
        span: Span,
        /// The span of the first one.
        first: Span,
    },
    /// Not an extractor, or the `@` is missing. `name` is that of the operator.
    SortOperator {
        /// Its span.
        span: Span,
        /// The name.
        name: &'static str,
    },
    /// `delete` of something that cannot be deleted.
    DeleteTarget {
        /// Its span.
        span: Span,
    },
    /// A histogram that is neither printed by itself nor indexed.
    HistogramValue {
        /// Its span.
        span: Span,
    },
    /// An overload's priority is not above 0.
    Priority {
        /// Its span.
        span: Span,
    },
    /// `*` as an index where a single element is required.
    AnyIndex {
        /// Its span.
        span: Span,
    },
    /// An assignment to something that is not a variable.
    NotAssignable {
        /// Its span.
        span: Span,
        /// Where a variable must stand: "left of an assignment".
        place: &'static str,
        /// What the user may have meant.
        hint: Option<&'static str>,
    },
    /// Something follows `$` or `$$`.
    AfterPretty {
        /// Its span.
        span: Span,
    },
    /// A print function without parentheses.
    PrintWithoutArguments {
        /// Its span.
        span: Span,
        /// The name.
        name: String,
    },
    /// A format or delimiter that is not a literal.
    PrintLiteral {
        /// Its span.
        span: Span,
        /// The name.
        name: String,
        /// It is a format.
        format: bool,
    },
    /// A print function with a wrong number of arguments.
    PrintCount {
        /// Its span.
        span: Span,
        /// The name.
        name: String,
        /// The least number of arguments.
        least: usize,
        /// The largest number of arguments.
        most: usize,
        /// The number given.
        given: usize,
    },
    /// An `@` operator with wrong arguments.
    AtArguments {
        /// Its span.
        span: Span,
        /// The name.
        name: &'static str,
        /// Its syntax.
        usage: &'static str,
    },
    /// An index on something without elements.
    NotIndexable {
        /// Its span.
        span: Span,
        /// The name.
        name: &'static str,
    },
    /// Two declarations of one name.
    Redeclared {
        /// Its kind: a function, for instance.
        what: &'static str,
        /// The name.
        name: String,
        /// Its span.
        span: Span,
        /// The span of the first one.
        first: Span,
    },
    /// `return` outside of a function.
    ReturnInProbe {
        /// Its span.
        span: Span,
    },
    /// A warning: this script argument (1-based) of the `given` ones is not used.
    UnusedArgument {
        /// The number.
        number: usize,
        /// Its text.
        text: String,
    },
}

impl SyntaxError {
    /// The error as a diagnostic.
    pub fn diagnostic(&self) -> Diagnostic {
        match self {
            SyntaxError::Lexical { error, span } => lexical(error, *span),
            SyntaxError::TooLong { span } => error("E0002", "this file is too large for a script").at(*span, ""),
            SyntaxError::ArgumentOutOfRange { span, number, quoted, given } => {
                argument_out_of_range(*span, *number, *quoted, *given)
            }
            SyntaxError::ArgumentNested { span } => {
                error("E0004", "a script argument may not refer to script arguments itself").at(*span, "")
            }
            SyntaxError::UnknownMacro { name, span, since: Some(since), .. } => {
                error("E0010", format!("no macro or operator @{name}")).at(*span, "").note(format!("SystemTap has it since {since}; --compatible asks for an older language"))
            }
            SyntaxError::UnknownMacro { name, span, map: true, .. } => error("E0010", format!("no macro or operator @{name}"))
                .at(*span, "")
                .note(format!("a global variable has no `@`: global {name} at the top of the script, then {name}[...] or {name} = ...")),
            SyntaxError::UnknownMacro { name, span, candidates, .. } => unknown_macro(name, *span, candidates),
            SyntaxError::MacroArguments { name, span, parameters, given, defined } => {
                macro_arguments(name, *span, parameters, *given, *defined)
            }
            SyntaxError::MacroArgumentsUnclosed { name, span } => {
                error("E0011", format!("the arguments of macro @{name} are not closed"))
                    .at(*span, "this call has no matching `)`")
            }
            SyntaxError::MacroRecursion { name, span, defined } => {
                error("E0012", format!("macro @{name} calls itself, so its expansion would never end"))
                    .at(*span, "called again here")
                    .also(*defined, "defined here")
            }
            SyntaxError::MacroDefinition { span, problem } => macro_definition(*span, problem),
            SyntaxError::MacroRedefined { name, span, first } => {
                error("E0014", format!("macro @{name} is defined twice")).at(*span, "again here").also(*first, "first here")
            }
            SyntaxError::MacroHidesOperator { name, span } => {
                Diagnostic::warning(Code("W0001"), format!("macro @{name} hides the built-in operator of this name"))
                    .at(*span, "")
            }
            SyntaxError::ExpansionTooLarge { span } => {
                error("E0015", "macros and script arguments expand to too much text").at(*span, "given up here")
            }
            SyntaxError::NotAMacro { span, found } => {
                error("E0016", format!("a macro library (.stpm) can only contain @define, found {found}"))
                    .at(*span, "")
                    .note("functions, probes and globals belong in a file named *.stp")
            }
            SyntaxError::Condition { span, found, problem, open, after_operand } => {
                condition(*span, found, *problem, *open, *after_operand)
            }
            SyntaxError::ConditionalUnclosed { span } => {
                error("E0021", "this conditional is not closed").at(*span, "it has no matching `%)`")
            }
            SyntaxError::ConditionalStray { span, op } => {
                error("E0022", format!("`{op}` without a conditional")).at(*span, "no `%(` is open here")
            }
            SyntaxError::ExpectedItem { span, found, hint } => {
                error("E0030", "expected `probe`, `function`, `global`, `private`, `@define` or `%{`")
                    .at(*span, format!("found {found}"))
                    .note(hint.as_deref().unwrap_or("statements belong inside the braces of a probe or function"))
            }
            SyntaxError::StrayBrace { span } => {
                error("E0031", "`}` without `{`").at(*span, "all braces before this are already closed")
            }
            SyntaxError::UnclosedBody { open, stopped } => unclosed_body(*open, stopped),
            SyntaxError::Unexpected(unexpected) => unexpected_word(unexpected),
            SyntaxError::TooDeep { span, limit } => {
                error("E0034", format!("statements and expressions are nested too deeply (more than {limit} levels)"))
                    .at(*span, "the limit is reached here")
                    .note("split it: put inner parts into functions or variables of their own")
            }
            SyntaxError::TooManyPoints { span, limit } => {
                error("E0035", format!("the braces of this probe point expand to more than {limit} points")).at(*span, "")
            }
            SyntaxError::AliasName { span } => error("E0036", "this cannot be the name of a probe alias").at(*span, "")
                .note("a name is components joined by dots, without `?`, `!`, `if`, braces or commas: probe my.alias = ..."),
            SyntaxError::SecondHandler { span, appends } => second_handler(*span, *appends),
            SyntaxError::ArraySize { span, name } => {
                error("E0038", format!("the size of array `{name}` must be 1 to {}", i32::MAX)).at(*span, "")
            }
            SyntaxError::ArrayInitial { span, name } => {
                error("E0038", format!("array `{name}` cannot have an initial value"))
                    .at(*span, "only scalars can")
                    .note("set elements in `probe begin` or `probe init`")
            }
            SyntaxError::SortTwice { span, first } => {
                error("E0039", "a foreach has one sort order").at(*span, "second mark").also(*first, "first mark")
            }
            SyntaxError::SortOperator { span, name } => error("E0039", format!("foreach cannot sort by @{name} like this"))
                .at(*span, "")
                .note("write @count, @sum, @min, @max, @avg or @variance followed by `+` or `-`: foreach (k in a @count-)"),
            SyntaxError::DeleteTarget { span } => error("E0040", "only a variable or an array element can be deleted")
                .at(*span, "neither of them"),
            SyntaxError::HistogramValue { span } => error("E0049", "a histogram is not a value")
                .at(*span, "")
                .note("print it alone, println(@hist_log(x)), or take a bucket, @hist_log(x)[i]"),
            SyntaxError::Priority { span } => error("E0050", "the priority of a function must be 1 or more")
                .at(*span, "")
                .note("overloads are tried by rising priority; without one a script's own comes first"),
            SyntaxError::AnyIndex { span } => error("E0048", "`*` cannot be an index here")
                .at(*span, "a single element is needed here")
                .note("`*` stands for any key in delete a[1, *], [1, *] in a and foreach ([k, l] in a[1, *])"),
            SyntaxError::NotAssignable { span, place, hint } => {
                let diagnostic = error("E0041", format!("a variable, array element or target must stand {place}"))
                    .at(*span, "this cannot be assigned to");
                noted(diagnostic, *hint)
            }
            SyntaxError::AfterPretty { span } => {
                error("E0042", "nothing can follow a pretty-printing `$` or `$$`").at(*span, "")
            }
            SyntaxError::PrintWithoutArguments { span, name } => {
                error("E0043", format!("`{name}` prints its arguments in parentheses and cannot be a variable"))
                    .at(*span, "expected `(` after this")
            }
            SyntaxError::PrintLiteral { span, name, format } => print_literal(*span, name, *format),
            SyntaxError::PrintCount { span, name, least, most, given } => print_count(*span, name, *least, *most, *given),
            SyntaxError::AtArguments { span, name, usage } => {
                error("E0046", format!("wrong arguments for @{name}")).at(*span, "").note(format!("write {usage}"))
            }
            SyntaxError::NotIndexable { span, name } => {
                error("E0047", format!("@{name} has no keys")).at(*span, "expected an array, @hist_log(x) or @hist_linear(...)")
            }
            SyntaxError::Redeclared { what, name, span, first } => redeclared(what, name, *span, *first),
            SyntaxError::ReturnInProbe { span } => error("E0109", "`return` outside a function")
                .as_stap("found 'return' not in function context")
                .at(*span, "")
                .note("`next` leaves a probe handler"),
            SyntaxError::UnusedArgument { number, text } => {
                Diagnostic::warning(Code("W0002"), format!("unused command line option ${number}/@{number}"))
                    .note(format!("the argument is {text:?}; a script reads it as ${number} (as it is) or @{number} (as a string)"))
            }
        }
    }
}

/// Two declarations of the same name, at `span` and `first`.
pub fn redeclared(what: &str, name: &str, span: Span, first: Span) -> Diagnostic {
    let said = match what {
        "parameter" => "duplicate parameter names".to_string(),
        what => format!("duplicate {what} name"),
    };
    error("E0105", format!("{what} `{name}` is declared twice")).as_stap(said).at(span, "").also(first, "first here")
}

fn error(code: &'static str, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(Code(code), message)
}

fn lexical(problem: &LexicalError, span: Span) -> Diagnostic {
    match problem {
        LexicalError::UnclosedString => error("E0001", "this string is not closed")
            .at(span, "no `\"` before the end of the line")
            .note("write \\n for a newline; literals next to each other are joined: \"one \" \"string\""),
        LexicalError::UnclosedComment => error("E0001", "this comment is not closed").at(span, "no `*/` follows"),
        LexicalError::UnclosedEmbeddedC => error("E0001", "this embedded C is not closed")
            .at(span, "no `%}` follows")
            .note("`%{` begins embedded C even after an operand; for a remainder leave a space behind the `%`"),
        LexicalError::StrayEmbeddedEnd => error("E0001", "`%}` without `%{`").at(span, "no embedded C is open here"),
        LexicalError::BadNumber(text) => {
            let diagnostic = error("E0001", "this number is invalid or out of range").at(span, "");
            let hexadecimal = text.starts_with("0x") || text.starts_with("0X");
            if !hexadecimal && text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit()) {
                diagnostic.note("a leading 0 makes a number octal, with digits 0 to 7")
            } else if !hexadecimal && text.bytes().any(|byte| !byte.is_ascii_digit()) {
                diagnostic.note("numbers are integers without a unit: 10, 017, 0xff")
            } else {
                diagnostic.note("integers are 0 to 18446744073709551615 (2^64-1)")
            }
        }
        LexicalError::TooManyDollars => error("E0001", "pretty-printing takes at most two dollars")
            .at(span, "")
            .note("$x$ prints one level, $x$$ all of them"),
        LexicalError::Character(text) => {
            let diagnostic = error("E0001", format!("`{text}` has no meaning here")).at(span, "");
            match text.as_str() {
                _ if text.starts_with('\'') => diagnostic.note("strings are written in double quotes"),
                _ if !text.is_ascii() => diagnostic
                    .note("names and operators are ASCII; other characters are only allowed in strings and comments"),
                "@" => diagnostic.note(
                    "a name must follow: @count(x), @1; a global variable has no `@`: global a at the top, then a[...]",
                ),
                "\\" => diagnostic.note("a statement may go on over lines without a backslash"),
                _ => diagnostic,
            }
        }
    }
}

fn argument_out_of_range(span: Span, number: u32, quoted: bool, given: usize) -> Diagnostic {
    let sigil = if quoted { '@' } else { '$' };
    let shown = if number == u32::MAX { "this".to_string() } else { format!("{sigil}{number}") };
    let have = match given {
        0 => "no argument was given".to_string(),
        1 => "one argument was given".to_string(),
        _ => format!("{given} arguments were given"),
    };
    error("E0003", format!("script argument {shown} is out of range"))
        .at(span, have)
        .note("arguments follow the script on the command line; `%( $# >= 1 %? $1 %: 0 %)` has a default")
}

fn unknown_macro(name: &str, span: Span, candidates: &[String]) -> Diagnostic {
    let near = suggest::suggest(name, candidates.iter().map(String::as_str));
    let diagnostic = error("E0010", format!("no macro or operator @{name}")).at(span, "");
    if near.is_empty()
        && let Some(instead) = foreign::instead(name, foreign::Use::At)
    {
        return diagnostic.note(instead);
    }
    let near: Vec<String> = near.iter().map(|name| format!("@{name}")).collect();
    diagnostic.near(span, &near)
}

fn macro_arguments(name: &str, span: Span, parameters: &[String], given: Option<usize>, defined: Span) -> Diagnostic {
    let label = match given {
        None => "no `(` follows".to_string(),
        Some(given) => format!("{given} given"),
    };
    error("E0011", format!("macro @{name} takes {}", count(parameters.len(), "argument")))
        .at(span, label)
        .also(defined, format!("defined as @{name}({})", parameters.join(", ")))
}

fn macro_definition(span: Span, problem: &DefinitionProblem) -> Diagnostic {
    let (message, label) = match problem {
        DefinitionProblem::Name => ("a name must follow `@define`".to_string(), ""),
        DefinitionProblem::Reserved => ("a macro cannot be named `define`".to_string(), ""),
        DefinitionProblem::Body(name) => (format!("the body of macro @{name} is missing"), "expected `%(` after this"),
        DefinitionProblem::Parameter => ("expected the name of a macro parameter".to_string(), ""),
        DefinitionProblem::ParameterTwice(name) => (format!("macro parameter `{name}` is declared twice"), ""),
        DefinitionProblem::ParametersUnclosed => {
            ("the parameters of this macro are not closed".to_string(), "expected `,` or `)` after this")
        }
        DefinitionProblem::Unclosed(name) => {
            (format!("the body of macro @{name} is not closed"), "it has no matching `%)`")
        }
        DefinitionProblem::Nested => ("a macro cannot define macros".to_string(), ""),
    };
    error("E0013", message)
        .at(span, label)
        .note("write @define name %( body %) or @define name(a, b) %( ... @a ... @b ... %)")
}

fn condition(span: Span, found: &str, problem: ConditionProblem, open: Span, after_operand: bool) -> Diagnostic {
    let (message, label) = match problem {
        ConditionProblem::Left => ("expected the left side of a conditional's comparison", format!("found {found}")),
        ConditionProblem::Operator => ("expected a comparison in this conditional", format!("found {found}")),
        ConditionProblem::EqualityOnly => ("only == and != compare this", String::new()),
        ConditionProblem::RightString => ("expected a string to compare with", format!("found {found}")),
        ConditionProblem::RightNumber => ("expected a number to compare with", format!("found {found}")),
        ConditionProblem::RightConfig => {
            ("expected a string, a number or CONFIG_... to compare with", format!("found {found}"))
        }
        ConditionProblem::NotASwitch => ("guru_mode is 0 or 1", format!("found {found}")),
        ConditionProblem::NoNumber => ("this kernel's value of the CONFIG_ option is not a number", String::new()),
        ConditionProblem::PatternOrdered => {
            ("a version with `*`, `?` or `[` can be compared by == and != only", String::new())
        }
        ConditionProblem::End => {
            ("expected `%?`, `&&` or `||` after this conditional's comparison", format!("found {found}"))
        }
    };
    let diagnostic = error("E0020", message).at(span, label).also(open, "the conditional begins here");
    if after_operand {
        return diagnostic
            .note("`%(` begins a conditional, even after an operand; for a remainder write `x % (y)`, with a space");
    }
    match problem {
        ConditionProblem::RightString => diagnostic.note("for instance kernel_v >= \"6.1\", arch == \"x86_64\""),
        ConditionProblem::Left => diagnostic.note(format!(
            "it can be {}, CONFIG_..., a number or a string, for instance $# or @1",
            CONDITION_WORDS.join(", ")
        )),
        _ => diagnostic,
    }
}

fn unclosed_body(open: Span, stopped: &Option<(Span, String)>) -> Diagnostic {
    let diagnostic = error("E0032", "this `{` is not closed");
    match stopped {
        Some((span, found)) => {
            let diagnostic = diagnostic
                .at(open, "")
                .also(*span, format!("{found} cannot be inside a body; a `}}` is missing before it"));
            match found.contains("global") {
                true => {
                    diagnostic.note("a global is declared at the top of the script, outside of probes and functions")
                }
                false => diagnostic,
            }
        }
        None => diagnostic.at(open, "the script ends without its `}`"),
    }
}

fn unexpected_word(unexpected: &Unexpected) -> Diagnostic {
    let Unexpected { span, found, after, expected, hint } = unexpected;
    let expected = match expected.split_last() {
        None => "nothing more".to_string(),
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
    };
    let message = match after {
        Some((after, _)) => format!("expected {expected} after {after}"),
        None => format!("expected {expected}"),
    };
    let found = found.as_ref().map_or("the script ends here".to_string(), |found| format!("found {found}"));
    let mut diagnostic = error("E0033", message).at(*span, found);
    if let Some((_, after)) = after
        && after.via != span.via
    {
        // The missing part is missing in the macro.
        diagnostic = diagnostic.also(*after, "after this");
    }
    noted(diagnostic, *hint)
}

fn noted(diagnostic: Diagnostic, hint: Option<&'static str>) -> Diagnostic {
    match hint {
        Some(hint) => diagnostic.note(hint),
        None => diagnostic,
    }
}

fn second_handler(span: Span, appends: bool) -> Diagnostic {
    let diagnostic = error("E0037", "a second handler is not allowed here").at(span, "");
    diagnostic.note(match appends {
        true => "`+=` has only an epilogue; for both write: probe NAME = POINTS { prologue }, { epilogue }",
        false => "only a probe alias has a prologue and an epilogue: probe NAME = POINTS { prologue }, { epilogue }",
    })
}

fn print_literal(span: Span, name: &str, format: bool) -> Diagnostic {
    let what = if format { "format" } else { "delimiter" };
    let diagnostic = error("E0044", format!("the {what} of {name} must be a string literal")).at(span, "");
    match format {
        true => diagnostic.note(format!("write {name}(\"%s\", value)")),
        false => diagnostic.note(format!("write {name}(\", \", first, second)")),
    }
}

fn print_count(span: Span, name: &str, least: usize, most: usize, given: usize) -> Diagnostic {
    let takes = match (least, most) {
        (least, most) if least == most => count(least, "value"),
        _ if given > most => format!("at most {}", count(most, "value")),
        _ => format!("at least {}", count(least, "value")),
    };
    error("E0045", format!("{name} prints {takes}")).at(span, format!("{given} given"))
}

fn count(number: usize, what: &str) -> String {
    match number {
        0 => format!("no {what}s"),
        1 => format!("one {what}"),
        _ => format!("{number} {what}s"),
    }
}
