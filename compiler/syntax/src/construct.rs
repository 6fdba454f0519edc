// SPDX-License-Identifier: GPL-2.0-or-later

//! Builds the nodes of the tree for the grammar's actions.
//!
//! Tracks the depth of each node: later passes walk the tree recursively, and a script must not overflow their stack.
//! Mistakes that leave the rest of an item readable are recorded and parsing continues.

mod chain;
mod operators;

pub use operators::print_words;

use std::cell::RefCell;

use lalrpop_util::ParseError;

use super::ast::*;
use super::error::{MAX_PROBLEMS, SyntaxError};
use super::operand::Terminal;
use super::token::{AtOperator, Token};
use spile_source::diagnostic::foreign;
use spile_source::{SourceMap, Span};

/// Maximum depth of an item. A later pass may use some kilobytes of stack for each level.
pub const MAX_DEPTH: u16 = 300;
/// Maximum number of probe points from the braces of one point.
const MAX_ALTERNATIVES: usize = 10_000;

/// Maximum number of macro calls searched for one that contains both ends of a node.
const MAX_JOIN: usize = 50;

/// A node and the depth of its subtree.
pub struct WithDepth<T> {
    /// The node.
    pub node: T,
    /// Levels of the subtree.
    pub depth: u16,
}

/// One of the probe points that braces expand to, or a part of it.
#[derive(Clone)]
pub struct Alternative {
    components: Vec<Component>,
    optional: bool,
    sufficient: bool,
}

impl Alternative {
    /// An alternative of one component.
    pub fn new(component: Component) -> Alternative {
        Alternative { components: vec![component], optional: false, sufficient: false }
    }

    fn followed_by(&self, tail: &Alternative) -> Alternative {
        Alternative {
            components: [&self.components[..], &tail.components[..]].concat(),
            optional: self.optional || tail.optional,
            sufficient: self.sufficient || tail.sufficient,
        }
    }
}

/// How a grammar action fails.
pub type GrammarError = ParseError<usize, Terminal, SyntaxError>;

/// `+` or `-` after the sort key of a foreach.
pub struct Mark {
    /// Largest first (`-`).
    pub descending: bool,
    /// The place of the mark.
    pub span: Span,
}

/// A key or value of foreach.
pub struct ForeachVariable {
    /// The variable's name.
    pub name: Name,
    /// Its sort order, if it has one.
    pub mark: Option<Mark>,
}

/// The parenthesised part of a foreach.
pub struct ForeachHead {
    /// The variable for the value (`foreach (value = key in array)`).
    pub value: Option<ForeachVariable>,
    /// The variables for the keys.
    pub keys: Vec<ForeachVariable>,
    /// The array or histogram.
    pub array: WithDepth<Expr>,
    /// The keys of a slice (`array[*, 1]`).
    pub slice: Option<Vec<WithDepth<Index>>>,
    /// The extractor that is sorted by, between the numbers of its first token and the one after its last.
    pub extractor: Option<(usize, AtOperator, usize)>,
    /// The sort order of the array.
    pub mark: Option<Mark>,
    /// The maximum number of iterations.
    pub limit: Option<WithDepth<Expr>>,
}

/// Builds the syntax tree: its functions are the actions of the grammar. `left` and `right` are numbers of tokens, the second one behind the last.
pub struct Builder<'s> {
    sources: &'s SourceMap,
    tokens: &'s [Token],
    problems: RefCell<Vec<SyntaxError>>,
    /// `*` indexes of elements not yet consumed by a `delete`.
    any_indexes: RefCell<Vec<Span>>,
    /// Histograms used as values; those printed or indexed are removed.
    histograms: RefCell<Vec<Span>>,
}

type NodeResult<T> = Result<WithDepth<T>, GrammarError>;

impl<'s> Builder<'s> {
    /// Without problems so far; `tokens` are those of one item.
    pub fn new(sources: &'s SourceMap, tokens: &'s [Token]) -> Builder<'s> {
        Builder {
            sources,
            tokens,
            problems: RefCell::default(),
            any_indexes: RefCell::default(),
            histograms: RefCell::default(),
        }
    }

    /// Errors recorded during parsing.
    pub fn into_problems(self) -> Vec<SyntaxError> {
        let mut problems = self.problems.into_inner();
        problems.extend(self.any_indexes.into_inner().into_iter().map(|span| SyntaxError::AnyIndex { span }));
        problems.extend(self.histograms.into_inner().into_iter().map(|span| SyntaxError::HistogramValue { span }));
        problems
    }

    fn note(&self, problem: SyntaxError) {
        let mut problems = self.problems.borrow_mut();
        if problems.len() < MAX_PROBLEMS {
            problems.push(problem);
        }
    }

    /// The span from token `left` to before token `right`; empty, before `left`, if there are none.
    pub fn span(&self, left: usize, right: usize) -> Span {
        let first = self.tokens.get(left).or(self.tokens.last()).map(|token| token.span);
        let last = right.checked_sub(1).filter(|last| *last >= left).and_then(|last| self.tokens.get(last));
        match (first, last) {
            (Some(first), Some(last)) => self.join(first, last.span),
            (Some(first), None) => Span { end: first.start, ..first },
            (None, _) => Span::none(),
        }
    }

    /// The span from one place to another. If macros are in between, in the innermost text that contains both.
    fn join(&self, first: Span, last: Span) -> Span {
        let outward = |span: Span| {
            std::iter::successors(Some(span), |span| self.sources.expansion(span.via).map(|expansion| expansion.call))
                .take(MAX_JOIN)
        };
        for start in outward(first) {
            for end in outward(last) {
                if start.file == end.file && start.via == end.via && end.end >= start.start {
                    return Span { end: end.end, ..start };
                }
            }
        }
        first
    }

    fn depth(&self, span: Span, parts: &[u16]) -> Result<u16, GrammarError> {
        let depth = parts.iter().copied().max().unwrap_or(0).saturating_add(1);
        match depth > MAX_DEPTH {
            true => Err(SyntaxError::TooDeep { span, limit: MAX_DEPTH }.into()),
            false => Ok(depth),
        }
    }

    // ---- top level

    /// A probe, or an alias if `heads` are not empty.
    pub fn probe(
        &self,
        left: usize,
        right: usize,
        heads: Vec<(Vec<ProbePoint>, bool, Span)>,
        points: Vec<ProbePoint>,
        body: WithDepth<Block>,
        second: Option<WithDepth<Block>>,
    ) -> Vec<Item> {
        let span = self.span(left, right);
        if heads.is_empty() {
            if let Some(second) = second {
                self.note(SyntaxError::SecondHandler { span: second.node.span, appends: false });
            }
            return vec![Item::Probe(Probe { points, body: body.node, span })];
        }
        let appends = heads.iter().any(|(_, appends, _)| *appends);
        let mut names = Vec::new();
        for (mut head, _, span) in heads {
            match head.pop() {
                Some(point) if head.is_empty() && !point.optional && !point.sufficient && point.condition.is_none() => {
                    names.push(point.components);
                }
                _ => self.note(SyntaxError::AliasName { span }),
            }
        }
        let (prologue, epilogue) = match (appends, second) {
            (true, Some(second)) => {
                self.note(SyntaxError::SecondHandler { span: second.node.span, appends: true });
                (None, Some(body))
            }
            (true, None) => (None, Some(body)),
            (false, second) => (Some(body), second),
        };
        let (prologue, epilogue) = (prologue.map(|block| block.node), epilogue.map(|block| block.node));
        vec![Item::Alias(Alias { names, points, prologue, epilogue, span })]
    }

    /// The priority of an overload: `function f(a):2`.
    pub fn priority(&self, left: usize, right: usize, priority: i64) -> i64 {
        if priority < 1 {
            self.note(SyntaxError::Priority { span: self.span(left, right) });
        }
        priority
    }

    /// Declarations of globals.
    pub fn globals(&self, variables: Vec<Global>, private: bool) -> Vec<Item> {
        variables.into_iter().map(|variable| Item::Global(Global { private, ..variable })).collect()
    }

    /// One variable of a declaration.
    pub fn variable(
        &self,
        left: usize,
        right: usize,
        name: Name,
        wrap: bool,
        size: Option<i64>,
        initial: Option<(Literal, Span)>,
    ) -> Global {
        let span = self.span(left, right);
        if size.is_some_and(|size| !(1..=i64::from(i32::MAX)).contains(&size)) {
            self.note(SyntaxError::ArraySize { span, name: name.text.clone() });
        }
        if let (Some((_, literal)), true) = (&initial, wrap || size.is_some()) {
            self.note(SyntaxError::ArrayInitial { span: *literal, name: name.text.clone() });
        }
        Global { name, private: false, wrap, size, initial, span }
    }

    // ---- probe points

    /// Each head followed by each tail: what braces expand to.
    pub fn product(
        &self,
        left: usize,
        right: usize,
        heads: Vec<Alternative>,
        tails: Vec<Alternative>,
    ) -> Result<Vec<Alternative>, GrammarError> {
        if heads.len().saturating_mul(tails.len()) > MAX_ALTERNATIVES {
            return Err(SyntaxError::TooManyPoints { span: self.span(left, right), limit: MAX_ALTERNATIVES }.into());
        }
        Ok(heads.iter().flat_map(|head| tails.iter().map(|tail| head.followed_by(tail))).collect())
    }

    /// Applies `?` or `!` to all of these.
    pub fn mark(&self, mut paths: Vec<Alternative>, (optional, sufficient): (bool, bool)) -> Vec<Alternative> {
        for path in &mut paths {
            path.optional |= optional;
            path.sufficient |= sufficient;
        }
        paths
    }

    /// Probe points of these paths, with the same condition.
    pub fn points(
        &self,
        left: usize,
        right: usize,
        paths: Vec<Alternative>,
        condition: Option<WithDepth<Expr>>,
    ) -> Vec<ProbePoint> {
        let span = self.span(left, right);
        let condition = condition.map(|condition| Box::new(condition.node));
        let point = |Alternative { components, optional, sufficient }| ProbePoint {
            components,
            optional,
            sufficient,
            condition: condition.clone(),
            span,
        };
        paths.into_iter().map(point).collect()
    }

    // ---- statements

    /// A statement; `parts`: the depths of what it contains.
    pub fn stmt(&self, left: usize, right: usize, kind: StmtKind, parts: &[u16]) -> NodeResult<Stmt> {
        let span = self.span(left, right);
        Ok(WithDepth { depth: self.depth(span, parts)?, node: Stmt { kind, span } })
    }

    /// A block.
    pub fn block(&self, left: usize, right: usize, statements: Vec<WithDepth<Stmt>>) -> WithDepth<Block> {
        let depth = statements.iter().map(|statement| statement.depth).max().unwrap_or(0);
        let statements = statements.into_iter().map(|statement| statement.node).collect();
        WithDepth { node: Block { statements, span: self.span(left, right) }, depth }
    }

    /// An `if`.
    pub fn if_(
        &self,
        left: usize,
        right: usize,
        condition: WithDepth<Expr>,
        then: WithDepth<Stmt>,
        otherwise: Option<WithDepth<Stmt>>,
    ) -> NodeResult<Stmt> {
        let otherwise = match otherwise {
            Some(rest) if rest.depth >= chain::ARMS => {
                return self.chained(self.span(left, right), condition, then, rest);
            }
            otherwise => otherwise,
        };
        let depths = [condition.depth, then.depth, depth_of(&otherwise)];
        let otherwise = otherwise.map(|otherwise| Box::new(otherwise.node));
        let kind = StmtKind::If { condition: condition.node, then: Box::new(then.node), otherwise };
        self.stmt(left, right, kind, &depths)
    }

    /// A `while`.
    pub fn while_(
        &self,
        left: usize,
        right: usize,
        condition: WithDepth<Expr>,
        body: WithDepth<Stmt>,
    ) -> NodeResult<Stmt> {
        let depths = [condition.depth, body.depth];
        self.stmt(left, right, StmtKind::While { condition: condition.node, body: Box::new(body.node) }, &depths)
    }

    /// A `for`.
    pub fn for_(
        &self,
        left: usize,
        right: usize,
        init: Option<WithDepth<Expr>>,
        condition: Option<WithDepth<Expr>>,
        step: Option<WithDepth<Expr>>,
        body: WithDepth<Stmt>,
    ) -> NodeResult<Stmt> {
        let depths = [depth_of(&init), depth_of(&condition), depth_of(&step), body.depth];
        let node = |expr: Option<WithDepth<Expr>>| expr.map(|expr| expr.node);
        let kind =
            StmtKind::For { init: node(init), condition: node(condition), step: node(step), body: Box::new(body.node) };
        self.stmt(left, right, kind, &depths)
    }

    /// A `foreach`.
    pub fn foreach(&self, left: usize, right: usize, head: ForeachHead, body: WithDepth<Stmt>) -> NodeResult<Stmt> {
        let sort = self.sort(&head);
        let ForeachHead { value, keys, array, slice, limit, .. } = head;
        let (slice, slice_depth) = match slice.map(undo_deep) {
            Some((slice, depth)) => (Some(slice), depth),
            None => (None, 0),
        };
        let depths = [array.depth, slice_depth, depth_of(&limit), body.depth];
        let foreach = Foreach {
            value: value.map(|value| value.name),
            keys: keys.into_iter().map(|key| key.name).collect(),
            array: array.node,
            slice,
            sort,
            limit: limit.map(|limit| limit.node),
            body: body.node,
        };
        self.stmt(left, right, StmtKind::Foreach(Box::new(foreach)), &depths)
    }

    /// The sort mark of a foreach; only one is allowed.
    fn sort(&self, head: &ForeachHead) -> Option<Sort> {
        let mut found = Vec::new();
        let sort = |mark: &Mark, by| Sort { by, descending: mark.descending, span: mark.span };
        for (at, key) in head.keys.iter().enumerate() {
            found.extend(key.mark.as_ref().map(|mark| sort(mark, SortBy::Key(at))));
        }
        found.extend(head.value.iter().filter_map(|value| value.mark.as_ref()).map(|mark| sort(mark, SortBy::Value)));
        match (&head.extractor, &head.mark) {
            (None, Some(mark)) => found.push(sort(mark, SortBy::Value)),
            (Some((_, AtOperator::Extract(extractor), _)), Some(mark)) => {
                found.push(sort(mark, SortBy::Extractor(*extractor)));
            }
            (Some((left, operator, right)), _) => {
                self.note(SyntaxError::SortOperator { span: self.span(*left, *right), name: operator.text() });
            }
            (None, None) => {}
        }
        if let [first, second, ..] = found[..] {
            self.note(SyntaxError::SortTwice { span: second.span, first: first.span });
        }
        found.first().copied()
    }

    /// A `delete`.
    pub fn delete(&self, left: usize, right: usize, target: WithDepth<Expr>) -> NodeResult<Stmt> {
        let bucket =
            matches!(&target.node.kind, ExprKind::Index(base, _) if matches!(base.kind, ExprKind::Histogram { .. }));
        if bucket || !matches!(target.node.kind, ExprKind::Ident(_) | ExprKind::Index(..)) {
            self.note(SyntaxError::DeleteTarget { span: target.node.span });
        }
        if let ExprKind::Index(_, indexes) = &target.node.kind {
            self.any_indexes.borrow_mut().retain(|span| !indexes.contains(&Index::Any(*span)));
        }
        self.stmt(left, right, StmtKind::Delete(target.node), &[target.depth])
    }

    // ---- expressions

    /// An expression; `parts`: the depths of what it contains.
    pub fn expr(&self, left: usize, right: usize, kind: ExprKind, parts: &[u16]) -> NodeResult<Expr> {
        let span = self.span(left, right);
        Ok(WithDepth { depth: self.depth(span, parts)?, node: Expr { kind, span } })
    }

    /// An index that is an expression.
    pub fn index(&self, expr: WithDepth<Expr>) -> WithDepth<Index> {
        WithDepth { node: Index::Expr(expr.node), depth: expr.depth }
    }

    /// The index `*`.
    pub fn any(&self, left: usize, right: usize) -> WithDepth<Index> {
        WithDepth { node: Index::Any(self.span(left, right)), depth: 0 }
    }

    /// An assignment.
    pub fn assign(
        &self,
        left: usize,
        right: usize,
        target: WithDepth<Expr>,
        op: AssignOp,
        value: WithDepth<Expr>,
    ) -> NodeResult<Expr> {
        let hint = match &target.node.kind {
            ExprKind::Binary(BinaryOp::Multiply, left, _) if is_declaration(left) => Some(foreign::NO_DECLARATIONS),
            _ if op == AssignOp::Set => Some("`=` assigns and `==` compares"),
            _ => None,
        };
        self.require_assignable(&target.node, "left of an assignment", hint);
        let depths = [target.depth, value.depth];
        self.expr(left, right, ExprKind::Assign(op, Box::new(target.node), Box::new(value.node)), &depths)
    }

    /// `++` or `--`.
    pub fn step(
        &self,
        left: usize,
        right: usize,
        delta: i64,
        prefix: bool,
        target: WithDepth<Expr>,
    ) -> NodeResult<Expr> {
        let sign = if delta > 0 { "with `++`" } else { "with `--`" };
        let hint = "`++` and `--` belong to the operand before them, even over a newline; put a `;` between";
        self.require_assignable(&target.node, sign, Some(hint));
        let kind = ExprKind::Step { delta, prefix, target: Box::new(target.node) };
        self.expr(left, right, kind, &[target.depth])
    }

    fn require_assignable(&self, target: &Expr, place: &'static str, hint: Option<&'static str>) {
        let assignable = matches!(
            target.kind,
            ExprKind::Ident(_)
                | ExprKind::Target(_)
                | ExprKind::Member(..)
                | ExprKind::Index(..)
                | ExprKind::Cast { .. }
                | ExprKind::Var { .. }
        );
        if !assignable {
            self.note(SyntaxError::NotAssignable { span: target.span, place, hint });
        }
    }

    /// `a ? b : c`.
    pub fn conditional(
        &self,
        left: usize,
        right: usize,
        condition: WithDepth<Expr>,
        then: WithDepth<Expr>,
        otherwise: WithDepth<Expr>,
    ) -> NodeResult<Expr> {
        let depths = [condition.depth, then.depth, otherwise.depth];
        let kind = ExprKind::Conditional(Box::new(condition.node), Box::new(then.node), Box::new(otherwise.node));
        self.expr(left, right, kind, &depths)
    }

    /// A binary operator.
    pub fn binary(
        &self,
        left: usize,
        right: usize,
        a: WithDepth<Expr>,
        op: BinaryOp,
        b: WithDepth<Expr>,
    ) -> NodeResult<Expr> {
        let depths = [a.depth, b.depth];
        self.expr(left, right, ExprKind::Binary(op, Box::new(a.node), Box::new(b.node)), &depths)
    }

    /// A unary operator.
    pub fn unary(&self, left: usize, right: usize, op: UnaryOp, operand: WithDepth<Expr>) -> NodeResult<Expr> {
        self.expr(left, right, ExprKind::Unary(op, Box::new(operand.node)), &[operand.depth])
    }

    /// `[keys] in array`.
    pub fn in_(
        &self,
        left: usize,
        right: usize,
        keys: Vec<WithDepth<Index>>,
        array: WithDepth<Expr>,
    ) -> NodeResult<Expr> {
        let (keys, depth) = undo_deep(keys);
        self.expr(left, right, ExprKind::In(keys, Box::new(array.node)), &[depth, array.depth])
    }

    /// `=~` or `!~`.
    pub fn matches(
        &self,
        left: usize,
        right: usize,
        operand: WithDepth<Expr>,
        negated: bool,
        pattern: Vec<u8>,
        pattern_span: Span,
    ) -> NodeResult<Expr> {
        let kind = ExprKind::Matches { left: Box::new(operand.node), pattern, pattern_span, negated };
        self.expr(left, right, kind, &[operand.depth])
    }

    /// `&operand`.
    pub fn address_of(&self, left: usize, right: usize, operand: WithDepth<Expr>) -> NodeResult<Expr> {
        self.expr(left, right, ExprKind::AddressOf(Box::new(operand.node)), &[operand.depth])
    }

    /// `base->member`.
    pub fn member(&self, left: usize, right: usize, base: WithDepth<Expr>, member: Name) -> NodeResult<Expr> {
        self.require_not_pretty(&base.node, member.span);
        self.expr(left, right, ExprKind::Member(Box::new(base.node), member), &[base.depth])
    }

    /// `base[indexes]`.
    pub fn element(
        &self,
        left: usize,
        right: usize,
        base: WithDepth<Expr>,
        indexes: Vec<WithDepth<Index>>,
    ) -> NodeResult<Expr> {
        self.require_not_pretty(&base.node, base.node.span);
        self.take_histogram(&base.node);
        let (indexes, depth) = undo_deep(indexes);
        let mut any_indexes = self.any_indexes.borrow_mut();
        let room = MAX_PROBLEMS.saturating_sub(any_indexes.len());
        any_indexes.extend(indexes.iter().take(room).filter_map(|index| match index {
            Index::Any(span) => Some(*span),
            Index::Expr(_) => None,
        }));
        self.expr(left, right, ExprKind::Index(Box::new(base.node), indexes), &[base.depth, depth])
    }

    /// `base$` or `base$$`.
    pub fn pretty(&self, left: usize, right: usize, base: WithDepth<Expr>, dollars: u8) -> NodeResult<Expr> {
        self.require_not_pretty(&base.node, base.node.span);
        self.expr(left, right, ExprKind::Pretty(Box::new(base.node), dollars), &[base.depth])
    }

    /// Accepts the histogram: it is used where one is allowed.
    fn take_histogram(&self, expr: &Expr) {
        if let ExprKind::Histogram { .. } = expr.kind {
            self.histograms.borrow_mut().retain(|span| *span != expr.span);
        }
    }

    fn require_not_pretty(&self, base: &Expr, span: Span) {
        if matches!(base.kind, ExprKind::Pretty(..)) {
            self.note(SyntaxError::AfterPretty { span });
        }
    }

    /// A name: a variable, or a call without parentheses.
    pub fn identifier(&self, left: usize, right: usize, name: String) -> NodeResult<Expr> {
        if operators::is_print(&name) {
            self.note(SyntaxError::PrintWithoutArguments { span: self.span(left, right), name: name.clone() });
        }
        self.expr(left, right, ExprKind::Ident(name), &[])
    }
}

fn depth_of<T>(part: &Option<WithDepth<T>>) -> u16 {
    part.as_ref().map_or(0, |part| part.depth)
}

fn undo_deep<T>(list: Vec<WithDepth<T>>) -> (Vec<T>, u16) {
    let depth = list.iter().map(|part| part.depth).max().unwrap_or(0);
    (list.into_iter().map(|part| part.node).collect(), depth)
}

/// Whether an expression is the type of a declaration in C's manner, as `char` of `char *s = "x"`.
fn is_declaration(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::Ident(name) if foreign::declares(name))
}
