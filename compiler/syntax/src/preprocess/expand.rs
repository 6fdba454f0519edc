// SPDX-License-Identifier: GPL-2.0-or-later

//! The lower layer: replaces macro calls and script arguments.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use crate::environment::Environment;
use crate::error::{DefinitionProblem, MAX_PROBLEMS, SyntaxError};
use crate::habit;
use crate::lexer;
use crate::macros::{Macro, Macros};
use crate::token::{Argument, AtOperator, Keyword, Kind, Op, Token};
use crate::version::compare_versions;
use spile_source::{ExpansionId, SourceMap, Span};

/// Maximum number of macro calls in one file. Scripts make some hundreds; macros that double themselves make 2^n.
const MAX_CALLS: usize = 100_000;
/// Maximum number of tokens that expansion may add to one file.
const MAX_ADDED: usize = 1_000_000;
/// Maximum nesting of macro bodies. Every call searches them.
const MAX_NESTING: usize = 500;
/// Maximum depth of the stack. The end of a call's arguments is searched for at every level.
const MAX_FRAMES: usize = 1_000;
/// Maximum number of tokens searched for the `%?` of a conditional that could not be read.
const MAX_LOOK_AHEAD: usize = 1_000;

/// A list of tokens being read.
struct Frame {
    tokens: Arc<[Token]>,
    at: usize,
    end: usize,
    /// The parameters in scope.
    bindings: Arc<Bindings>,
    /// The call through which the tokens are reached.
    via: ExpansionId,
    /// Macros whose bodies enclose this list, as written: calling one of them again would not terminate.
    active: Option<Arc<Active>>,
    /// Text of a script argument, which may not refer to arguments.
    pasted: bool,
}

type Bindings = HashMap<String, Closure>;

/// A macro's argument: the tokens of the call and the scope to read them in.
struct Closure {
    tokens: Arc<[Token]>,
    start: usize,
    end: usize,
    bindings: Arc<Bindings>,
    via: ExpansionId,
    active: Option<Arc<Active>>,
    pasted: bool,
}

struct Active {
    definition: Arc<Macro>,
    outer: Option<Arc<Active>>,
    /// The depth, including this one.
    depth: usize,
}

/// Expands the macros and conditionals of one file.
pub(super) struct Expander<'a> {
    sources: &'a mut SourceMap,
    environment: &'a Environment,
    library: &'a Macros,
    own: HashMap<String, Arc<Macro>>,
    order: Vec<String>,
    frames: Vec<Frame>,
    calls: usize,
    /// Number of tokens that may still be emitted.
    left: usize,
    /// Tokens of script arguments, by number and adjacent suffix.
    pasted: HashMap<(u32, String), Arc<[Token]>>,
    pub(super) problems: Vec<SyntaxError>,
    pub(super) arguments: BTreeSet<u32>,
}

impl<'a> Expander<'a> {
    /// For the tokens of one file; `library` has the macros of the tapset.
    pub(super) fn new(
        sources: &'a mut SourceMap,
        tokens: Vec<Token>,
        environment: &'a Environment,
        library: &'a Macros,
    ) -> Expander<'a> {
        let left = tokens.len() + MAX_ADDED;
        let base = Frame {
            at: 0,
            end: tokens.len(),
            tokens: tokens.into(),
            bindings: Arc::default(),
            via: ExpansionId::NONE,
            active: None,
            pasted: false,
        };
        Expander {
            sources,
            environment,
            library,
            own: HashMap::new(),
            order: Vec::new(),
            frames: vec![base],
            calls: 0,
            left,
            pasted: HashMap::new(),
            problems: Vec::new(),
            arguments: BTreeSet::new(),
        }
    }

    /// What conditions are evaluated with.
    pub(super) fn environment(&self) -> &'a Environment {
        self.environment
    }

    /// The file's own macros in the order of their definitions.
    pub(super) fn into_definitions(self) -> Vec<Macro> {
        let Expander { own, order, .. } = self;
        order.iter().filter_map(|name| own.get(name)).map(|definition| Macro::clone(definition)).collect()
    }

    /// The next token as written, with the call through which it is reached.
    pub(super) fn next_raw(&mut self) -> Option<Token> {
        loop {
            let frame = self.frames.last_mut()?;
            if frame.at < frame.end {
                let mut token = frame.tokens[frame.at].clone();
                frame.at += 1;
                if token.span.via == ExpansionId::NONE {
                    token.span.via = frame.via;
                }
                return Some(token);
            }
            self.frames.pop();
        }
    }

    /// The next token, expanded: never a [`Kind::AtWord`] or [`Kind::Argument`].
    pub(super) fn next(&mut self) -> Option<Token> {
        loop {
            let token = self.next_raw()?;
            let span = token.span;
            let replaced = match token.kind {
                Kind::AtWord(name) if name == "define" => self.define(span),
                Kind::AtWord(name) => self.call(&name, span),
                Kind::Argument(argument) => self.paste(&argument, span),
                // An identifier of these tokens may have become a keyword.
                Kind::Keyword(Keyword::Private) if !self.allows_version("3.0", span) => {
                    Some(Kind::Ident("private".into()))
                }
                kind => Some(kind),
            };
            if self.frames.is_empty() && replaced.is_none() {
                return None;
            }
            if let Some(kind) = replaced {
                match self.left.checked_sub(1) {
                    Some(left) => self.left = left,
                    None => self.give_up(span),
                }
                if self.problems.len() >= MAX_PROBLEMS {
                    self.frames.clear();
                }
                return Some(Token { kind, span });
            }
        }
    }

    /// Whether the list being read continues with a conditional's `%?` before that conditional could end.
    pub(super) fn conditional_follows(&self) -> bool {
        let Some(frame) = self.frames.last() else { return false };
        let mut depth = 0usize;
        for token in frame.tokens[frame.at..frame.end].iter().take(MAX_LOOK_AHEAD) {
            match token.kind {
                Kind::Op(Op::IfOpen) => depth += 1,
                Kind::Op(Op::IfThen) if depth == 0 => return true,
                Kind::Op(Op::IfClose) if depth == 0 => return false,
                Kind::Op(Op::IfClose) => depth -= 1,
                _ => {}
            }
        }
        false
    }

    /// Stops reading: the expansion does not terminate.
    fn give_up(&mut self, span: Span) {
        self.problems.push(SyntaxError::ExpansionTooLarge { span });
        self.frames.clear();
    }

    /// The next token of the same list, unexpanded.
    fn peek_here(&self) -> Option<&Token> {
        let frame = self.frames.last()?;
        frame.tokens[frame.at..frame.end].first()
    }

    fn peek_is(&self, op: Op) -> bool {
        self.peek_here().is_some_and(|token| token.kind == Kind::Op(op))
    }

    fn skip_here(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            frame.at += 1;
        }
    }

    /// `@name`: a parameter, macro or operator. Returns a token, or nothing if a list was pushed on the stack.
    fn call(&mut self, name: &str, span: Span) -> Option<Kind> {
        let frame = self.frames.last()?;
        if let Some(closure) = frame.bindings.get(name) {
            let run = Frame {
                tokens: closure.tokens.clone(),
                at: closure.start,
                end: closure.end,
                bindings: closure.bindings.clone(),
                via: closure.via,
                active: closure.active.clone(),
                pasted: closure.pasted,
            };
            return self.enter(run, span);
        }
        let Some(definition) = self.own.get(name).or_else(|| self.library.get(name)).cloned() else {
            let operator = AtOperator::from_text(name);
            if let Some(operator) = operator.filter(|operator| self.allows_version(operator.since(), span)) {
                return Some(Kind::At(operator));
            }
            let since = operator.map(AtOperator::since);
            let map = self.frames.last().is_some_and(|frame| habit::is_map(frame.tokens.get(frame.at)));
            let candidates = self.at_words();
            self.problems.push(SyntaxError::UnknownMacro { name: name.to_string(), span, candidates, since, map });
            return Some(Kind::Poison);
        };
        let mut enclosing = frame.active.as_ref();
        while let Some(active) = enclosing {
            if Arc::ptr_eq(&active.definition, &definition) {
                let name = name.to_string();
                self.problems.push(SyntaxError::MacroRecursion { name, span, defined: definition.span });
                return Some(Kind::Poison);
            }
            enclosing = active.outer.as_ref();
        }
        let depth = frame.active.as_ref().map_or(0, |active| active.depth) + 1;
        if depth > MAX_NESTING {
            self.give_up(span);
            return None;
        }
        let active = Some(Arc::new(Active { definition: definition.clone(), outer: frame.active.clone(), depth }));
        let Ok(bindings) = self.take_arguments(&definition, span) else { return Some(Kind::Poison) };
        let run = Frame {
            tokens: definition.body.clone(),
            at: 0,
            end: definition.body.len(),
            bindings: Arc::new(bindings),
            via: self.sources.add_expansion(format!("@{name}"), span),
            active,
            pasted: false,
        };
        self.enter(run, span)
    }

    /// Whether `--compatible` allows this version at `span`. The library is written in the current language.
    fn allows_version(&self, since: &str, span: Span) -> bool {
        let spoken = self.environment.compatible.as_str();
        let is_library = self.sources.file(span.file).origin.is_library();
        is_library || since.is_empty() || spoken.is_empty() || compare_versions(spoken, since).is_ge()
    }

    fn enter(&mut self, run: Frame, span: Span) -> Option<Kind> {
        self.calls += 1;
        if self.calls > MAX_CALLS || self.frames.len() > MAX_FRAMES {
            self.give_up(span);
        } else {
            self.frames.push(run);
        }
        None
    }

    /// Every valid `@word`, including parameters.
    fn at_words(&self) -> Vec<String> {
        let mut names: Vec<String> = AtOperator::ALL.iter().map(|(name, _)| name.to_string()).collect();
        names.extend(self.own.keys().cloned());
        names.extend(self.library.names().map(str::to_string));
        if let Some(frame) = self.frames.last() {
            names.extend(frame.bindings.keys().cloned());
        }
        names.sort();
        names
    }

    /// The parenthesised arguments of a call, split at commas outside brackets.
    fn take_arguments(&mut self, definition: &Macro, span: Span) -> Result<Bindings, ()> {
        let Some(parameters) = &definition.parameters else { return Ok(Bindings::new()) };
        let wrong = |given| SyntaxError::MacroArguments {
            name: definition.name.clone(),
            span,
            parameters: parameters.clone(),
            given,
            defined: definition.span,
        };
        if !self.peek_is(Op::ParenOpen) {
            self.problems.push(wrong(None));
            return Err(());
        }
        let Some(frame) = self.frames.last_mut() else { return Err(()) };
        let first = frame.at + 1;
        let Some((mut ranges, closed)) = argument_ranges(&frame.tokens, first..frame.end) else {
            let name = definition.name.clone();
            self.problems.push(SyntaxError::MacroArgumentsUnclosed { name, span });
            // Everything that follows belongs to the call.
            frame.at = frame.end;
            return Err(());
        };
        frame.at = closed + 1;
        if parameters.is_empty() && ranges == [(first, first)] {
            ranges.clear();
        }
        if ranges.len() != parameters.len() {
            // `@m()` with one parameter passes one empty argument; with more, none.
            let empty = ranges.len() == 1 && first == closed;
            self.problems.push(wrong(Some(if empty { 0 } else { ranges.len() })));
            return Err(());
        }
        let closures = ranges.into_iter().map(|(start, end)| Closure {
            tokens: frame.tokens.clone(),
            start,
            end,
            bindings: frame.bindings.clone(),
            via: frame.via,
            active: frame.active.clone(),
            pasted: frame.pasted,
        });
        Ok(parameters.iter().cloned().zip(closures).collect())
    }

    /// `$1`, `@1`, `$#`, `@#`.
    fn paste(&mut self, argument: &Argument, span: Span) -> Option<Kind> {
        if self.frames.last().is_some_and(|frame| frame.pasted) {
            self.problems.push(SyntaxError::ArgumentNested { span });
            return Some(Kind::Poison);
        }
        let given = self.environment.arguments.len();
        let Some(number) = argument.number else {
            self.arguments.insert(0);
            return Some(match argument.quoted {
                true => Kind::String(given.to_string().into_bytes()),
                false => Kind::Number(given as i64),
            });
        };
        let index = (number as usize).checked_sub(1);
        let Some(text) = index.and_then(|index| self.environment.arguments.get(index)) else {
            self.problems.push(SyntaxError::ArgumentOutOfRange { span, number, quoted: argument.quoted, given });
            return Some(Kind::Poison);
        };
        self.arguments.insert(number);
        if argument.quoted {
            return Some(Kind::String(text.clone().into_bytes()));
        }
        let tokens = match self.pasted.get(&(number, argument.tail.clone())) {
            Some(tokens) => tokens.clone(),
            None => {
                let text = format!("{text}{}", argument.tail).into_bytes();
                let origin = self.sources.file(span.file).origin;
                let file = self.sources.add(format!("argument {number}"), text.clone(), origin);
                let tokens: Arc<[Token]> = lexer::lex(file, &text).into();
                self.pasted.insert((number, argument.tail.clone()), tokens.clone());
                tokens
            }
        };
        let frame = self.frames.last()?;
        let run = Frame {
            at: 0,
            end: tokens.len(),
            tokens,
            bindings: frame.bindings.clone(),
            active: frame.active.clone(),
            via: self.sources.add_expansion(format!("${number}"), span),
            pasted: true,
        };
        self.enter(run, span)
    }

    /// After `@define`: reads the definition. An invalid one leaves only poison.
    fn define(&mut self, span: Span) -> Option<Kind> {
        let (span, problem) = self.read_definition(span).err()?;
        self.skip_definition(&problem);
        self.problems.push(SyntaxError::MacroDefinition { span, problem });
        Some(Kind::Poison)
    }

    /// Skips the rest of a definition that could not be read.
    fn skip_definition(&mut self, problem: &DefinitionProblem) {
        let in_head = matches!(
            problem,
            DefinitionProblem::Name
                | DefinitionProblem::Reserved
                | DefinitionProblem::Parameter
                | DefinitionProblem::ParameterTwice(_)
                | DefinitionProblem::ParametersUnclosed
        );
        let Some(frame) = self.frames.last_mut().filter(|_| in_head) else { return };
        let mut depth = 0usize;
        for at in frame.at..frame.end {
            match frame.tokens[at].kind {
                Kind::Op(Op::IfOpen) => depth += 1,
                Kind::Op(Op::IfClose) if depth <= 1 => {
                    frame.at = at + 1;
                    return;
                }
                Kind::Op(Op::IfClose) => depth -= 1,
                // Something else starts before the body.
                Kind::Keyword(_) | Kind::AtWord(_) | Kind::Op(Op::BraceOpen) if depth == 0 => return,
                _ => {}
            }
        }
    }

    fn read_definition(&mut self, span: Span) -> Result<(), (Span, DefinitionProblem)> {
        if self.frames.len() > 1 {
            return Err((span, DefinitionProblem::Nested));
        }
        let (name, name_span) = match self.peek_here() {
            Some(Token { kind: Kind::Ident(name), span }) => (name.clone(), *span),
            _ => return Err((span, DefinitionProblem::Name)),
        };
        self.skip_here();
        if name == "define" {
            return Err((name_span, DefinitionProblem::Reserved));
        }
        let parameters = match self.peek_is(Op::ParenOpen) {
            true => Some(self.read_parameters(name_span)?),
            false => None,
        };
        if !self.peek_is(Op::IfOpen) {
            return Err((name_span, DefinitionProblem::Body(name)));
        }
        self.skip_here();
        let body = self.read_body(name_span, &name)?;
        let definition = Macro { name: name.clone(), span: name_span, parameters, body };
        if let Some(first) = self.own.get(&name) {
            let problem = SyntaxError::MacroRedefined { name, span: name_span, first: first.span };
            self.problems.push(problem);
            return Ok(());
        }
        if AtOperator::from_text(&name).is_some() {
            self.problems.push(SyntaxError::MacroHidesOperator { name: name.clone(), span: name_span });
        }
        self.order.push(name.clone());
        self.own.insert(name, Arc::new(definition));
        Ok(())
    }

    fn read_parameters(&mut self, span: Span) -> Result<Vec<String>, (Span, DefinitionProblem)> {
        let mut parameters: Vec<String> = Vec::new();
        self.skip_here();
        loop {
            let (name, at) = match self.peek_here() {
                Some(Token { kind: Kind::Ident(name), span }) => (name.clone(), *span),
                Some(Token { kind: Kind::Keyword(keyword), span }) => (keyword.text().to_string(), *span),
                other => return Err((other.map_or(span, |token| token.span), DefinitionProblem::Parameter)),
            };
            self.skip_here();
            if parameters.contains(&name) {
                return Err((at, DefinitionProblem::ParameterTwice(name)));
            }
            parameters.push(name);
            let more = self.peek_is(Op::Comma);
            if !more && !self.peek_is(Op::ParenClose) {
                return Err((at, DefinitionProblem::ParametersUnclosed));
            }
            self.skip_here();
            if !more {
                return Ok(parameters);
            }
        }
    }

    /// Skips to the `%)` that ends the definition.
    fn read_body(&mut self, span: Span, name: &str) -> Result<Arc<[Token]>, (Span, DefinitionProblem)> {
        let Some(frame) = self.frames.last_mut() else { return Ok(Arc::from([])) };
        let start = frame.at;
        let mut depth = 0usize;
        let mut nested = None;
        while frame.at < frame.end {
            let token = &frame.tokens[frame.at];
            frame.at += 1;
            match &token.kind {
                Kind::Op(Op::IfOpen) => depth += 1,
                Kind::Op(Op::IfClose) if depth == 0 => {
                    let body = frame.tokens[start..frame.at - 1].into();
                    return match nested {
                        Some(span) => Err((span, DefinitionProblem::Nested)),
                        None => Ok(body),
                    };
                }
                Kind::Op(Op::IfClose) => depth -= 1,
                Kind::AtWord(word) if word == "define" => nested = Some(token.span),
                _ => {}
            }
        }
        Err((span, DefinitionProblem::Unclosed(name.to_string())))
    }
}

/// The arguments of a macro call in the tokens of `range`, which begins behind its parenthesis: their ranges, one if it is
/// empty, and the index of the closing parenthesis. None: it is not closed.
fn argument_ranges(tokens: &[Token], range: Range<usize>) -> Option<(Vec<(usize, usize)>, usize)> {
    let mut ranges = Vec::new();
    let mut start = range.start;
    let mut depth = 0usize;
    for at in range {
        match tokens[at].kind {
            Kind::Op(Op::ParenClose) if depth == 0 => {
                ranges.push((start, at));
                return Some((ranges, at));
            }
            Kind::Op(Op::Comma) if depth == 0 => {
                ranges.push((start, at));
                start = at + 1;
            }
            Kind::Op(Op::ParenOpen | Op::BracketOpen | Op::BraceOpen | Op::IfOpen) => depth += 1,
            Kind::Op(Op::ParenClose | Op::BracketClose | Op::BraceClose | Op::IfClose) => {
                depth = depth.saturating_sub(1);
            }
            _ => {}
        }
    }
    None
}
