// SPDX-License-Identifier: GPL-2.0-or-later

//! The tree as script text, for `-p1` and for messages that quote a part of a script.
//!
//! The text parses to the same tree: parentheses are added where the tree needs them, macros, conditionals and braces
//! of probe points stay expanded.

mod expression;

use super::ast::*;
pub use expression::binary_text;
use expression::print as print_expr;

/// A whole file, one item after the other.
pub fn script(script: &Script) -> String {
    let mut printer = Printer::default();
    for item in &script.items {
        printer.item(item);
    }
    printer.out
}

/// One expression, on one line unless it holds embedded C.
pub fn expr(expr: &Expr) -> String {
    print_expr(expr)
}

/// `vfs.read.return? if (x)`.
pub fn point(point: &ProbePoint) -> String {
    let mut text = components(&point.components);
    if point.optional {
        text.push('?');
    }
    if point.sufficient {
        text.push('!');
    }
    if let Some(condition) = &point.condition {
        text.push_str(&format!(" if ({})", print_expr(condition)));
    }
    text
}

/// `kernel.function("vfs_read").return`.
pub fn components(components: &[Component]) -> String {
    let component = |component: &Component| match &component.argument {
        Some(argument) => format!("{}({})", component.name, literal(argument)),
        None => component.name.clone(),
    };
    components.iter().map(component).collect::<Vec<_>>().join(".")
}

/// A number or quoted string.
pub fn literal(literal: &Literal) -> String {
    match literal {
        Literal::Number(number) => number.to_string(),
        Literal::String(text) => quote(text),
    }
}

/// A string literal with these bytes.
pub fn quote(text: &[u8]) -> String {
    let mut quoted = String::from("\"");
    for &byte in text {
        match byte {
            b'"' => quoted.push_str("\\\""),
            b'\\' => quoted.push_str("\\\\"),
            b'\n' => quoted.push_str("\\n"),
            b'\t' => quoted.push_str("\\t"),
            b' '..=b'~' => quoted.push(byte as char),
            // Three digits, so that a following digit is not part of the escape.
            _ => quoted.push_str(&format!("\\{byte:03o}")),
        }
    }
    quoted.push('"');
    quoted
}

#[derive(Default)]
struct Printer {
    out: String,
    indent: usize,
}

impl Printer {
    fn line(&mut self, text: &str) {
        self.start();
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn start(&mut self) {
        self.out.push_str(&"  ".repeat(self.indent));
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Probe(probe) => {
                self.out.push_str(&format!("probe {} ", points(&probe.points)));
                self.block(&probe.body);
                self.out.push('\n');
            }
            Item::Alias(alias) => self.alias(alias),
            Item::Global(global) => {
                let text = print_global(global);
                self.line(&text);
            }
            Item::Function(function) => self.function(function),
            Item::EmbeddedC(code) => {
                let text = embedded(code);
                self.line(&text);
            }
        }
    }

    fn alias(&mut self, alias: &Alias) {
        let sign = if alias.prologue.is_none() { " += " } else { " = " };
        let names: Vec<String> = alias.names.iter().map(|name| components(name) + sign).collect();
        self.out.push_str(&format!("probe {}{} ", names.concat(), points(&alias.points)));
        let handlers: Vec<&Block> = [&alias.prologue, &alias.epilogue].into_iter().flatten().collect();
        for (at, handler) in handlers.iter().enumerate() {
            if at > 0 {
                self.out.push_str(", ");
            }
            self.block(handler);
        }
        self.out.push('\n');
    }

    fn function(&mut self, function: &Function) {
        let parameter = |parameter: &Parameter| parameter.name.text.clone() + type_suffix(parameter.type_name);
        let parameters: Vec<String> = function.parameters.iter().map(parameter).collect();
        let private = if function.private { "private " } else { "" };
        let priority = function.priority.map(|priority| format!(":{priority}")).unwrap_or_default();
        self.out.push_str(&format!(
            "{private}function {}{}({}){priority} ",
            function.name.text,
            type_suffix(function.returns),
            parameters.join(", ")
        ));
        match &function.body {
            FunctionBody::Script(body) => self.block(body),
            FunctionBody::EmbeddedC(code) => self.out.push_str(&embedded(code)),
        }
        self.out.push('\n');
    }

    /// From the opening brace, on the current line, to the closing one, without a newline.
    fn block(&mut self, block: &Block) {
        self.out.push_str("{\n");
        self.indent += 1;
        for statement in &block.statements {
            self.start();
            self.statement(statement);
        }
        self.indent -= 1;
        self.start();
        self.out.push('}');
    }

    /// A statement, starting on the current line, with its newline.
    fn statement(&mut self, statement: &Stmt) {
        match &statement.kind {
            StmtKind::Empty => self.out.push_str(";\n"),
            StmtKind::Block(block) => {
                self.block(block);
                self.out.push('\n');
            }
            StmtKind::Expr(expr) => self.simple(&print_expr(expr)),
            StmtKind::If { condition, then, otherwise } => self.if_(condition, then, otherwise.as_deref()),
            StmtKind::While { condition, body } => {
                self.out.push_str(&format!("while ({})", print_expr(condition)));
                self.body(body);
            }
            StmtKind::For { init, condition, step, body } => {
                let part = |expr: &Option<Expr>| expr.as_ref().map(print_expr).unwrap_or_default();
                self.out.push_str(&format!("for ({}; {}; {})", part(init), part(condition), part(step)));
                self.body(body);
            }
            StmtKind::Foreach(foreach) => {
                self.out.push_str(&format!("foreach ({})", foreach_head(foreach)));
                self.body(&foreach.body);
            }
            StmtKind::Break => self.simple("break"),
            StmtKind::Continue => self.simple("continue"),
            StmtKind::Next => self.simple("next"),
            StmtKind::Return(None) => self.simple("return"),
            StmtKind::Return(Some(value)) => self.simple(&format!("return {}", print_expr(value))),
            StmtKind::Delete(target) => self.simple(&format!("delete {}", print_expr(target))),
            StmtKind::Try { body, message, handler } => {
                self.out.push_str("try ");
                self.block(body);
                let message = message.as_ref().map(|name| format!("({}) ", name.text)).unwrap_or_default();
                self.out.push_str(&format!(" catch {message}"));
                self.block(handler);
                self.out.push('\n');
            }
        }
    }

    fn simple(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push_str(";\n");
    }

    fn if_(&mut self, condition: &Expr, then: &Stmt, otherwise: Option<&Stmt>) {
        self.out.push_str(&format!("if ({})", print_expr(condition)));
        let Some(otherwise) = otherwise else { return self.body(then) };
        if wants_else(then) {
            self.out.push_str(" {\n");
            self.indent += 1;
            self.start();
            self.statement(then);
            self.indent -= 1;
            self.line("}");
        } else {
            self.body(then);
        }
        self.start();
        self.out.push_str("else");
        match &otherwise.kind {
            StmtKind::If { .. } => {
                self.out.push(' ');
                self.statement(otherwise);
            }
            _ => self.body(otherwise),
        }
    }

    /// A block on the same line, any other statement on the next.
    fn body(&mut self, body: &Stmt) {
        if let StmtKind::Block(_) = body.kind {
            self.out.push(' ');
            return self.statement(body);
        }
        self.out.push('\n');
        self.indent += 1;
        self.start();
        self.statement(body);
        self.indent -= 1;
    }
}

/// Whether a following `else` would become part of this statement.
fn wants_else(statement: &Stmt) -> bool {
    match &statement.kind {
        StmtKind::If { otherwise: None, .. } => true,
        StmtKind::If { otherwise: Some(last), .. } => wants_else(last),
        StmtKind::While { body, .. } | StmtKind::For { body, .. } => wants_else(body),
        StmtKind::Foreach(foreach) => wants_else(&foreach.body),
        _ => false,
    }
}

fn points(points: &[ProbePoint]) -> String {
    points.iter().map(point).collect::<Vec<_>>().join(", ")
}

fn print_global(global: &Global) -> String {
    let keyword = if global.private { "private global" } else { "global" };
    let mut text = format!("{keyword} {}", global.name.text);
    if global.wrap {
        text.push('%');
    }
    if let Some(size) = global.size {
        text.push_str(&format!("[{size}]"));
    }
    if let Some((literal, _)) = &global.initial {
        text.push_str(&format!(" = {}", self::literal(literal)));
    }
    text
}

fn type_suffix(name: Option<TypeName>) -> &'static str {
    match name {
        None => "",
        Some(TypeName::Long) => ":long",
        Some(TypeName::String) => ":string",
    }
}

fn embedded(code: &EmbeddedC) -> String {
    format!("%{{{}%}}", code.text)
}

fn foreach_head(foreach: &Foreach) -> String {
    let mark = |by: SortBy| match foreach.sort {
        Some(sort) if sort.by == by => sort_sign(sort),
        _ => "",
    };
    // The sort mark of the value means the same as that of the array; it is printed at the array.
    let value = foreach.value.as_ref().map(|value| format!("{} = ", value.text)).unwrap_or_default();
    let keys: Vec<String> =
        foreach.keys.iter().enumerate().map(|(at, key)| key.text.clone() + mark(SortBy::Key(at))).collect();
    let keys = match &keys[..] {
        [key] => key.clone(),
        _ => format!("[{}]", keys.join(", ")),
    };
    let array = print_expr(&foreach.array);
    let slice = foreach.slice.as_ref().map(|slice| format!("[{}]", expression::indexes(slice))).unwrap_or_default();
    let sort = match foreach.sort {
        Some(sort @ Sort { by: SortBy::Value, .. }) => sort_sign(sort).to_string(),
        Some(sort @ Sort { by: SortBy::Extractor(extractor), .. }) => {
            format!(" @{}{}", expression::extractor_name(extractor), sort_sign(sort))
        }
        _ => String::new(),
    };
    let limit = foreach.limit.as_ref().map(|limit| format!(" limit {}", print_expr(limit))).unwrap_or_default();
    format!("{value}{keys} in {array}{slice}{sort}{limit}")
}

fn sort_sign(sort: Sort) -> &'static str {
    if sort.descending { "-" } else { "+" }
}
