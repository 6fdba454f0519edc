// SPDX-License-Identifier: GPL-2.0-or-later

//! Reduces a program that differs: removes whatever can be removed, in rounds of attempts that run in one guest.

use anyhow::Result;

use super::run::{Module, Outcome, run};
use super::tree::*;
use super::{Subject, TOGETHER, interpret};
use crate::place::Place;

/// Number of attempts in one round.
const ATTEMPTS: usize = 40;
const ROUNDS: usize = 40;

/// The smallest program found, and its failure.
pub fn smallest(place: &Place, subject: &Subject, outcome: &Outcome) -> Result<(Subject, Outcome)> {
    let (mut subject, mut outcome) = (subject.clone(), outcome.clone());
    let mut from = 0;
    for _ in 0..ROUNDS {
        let smaller: Vec<Subject> =
            attempts(&subject.program).into_iter().filter_map(|program| as_subject(&subject, program)).collect();
        let round: Vec<&Subject> = smaller.iter().skip(from).take(ATTEMPTS).collect();
        if round.is_empty() {
            break;
        }
        let number = (subject.seed % TOGETHER) as usize;
        let modules: Vec<Module> = round.iter().map(|subject| Module::new(vec![(number, *subject)])).collect();
        let outcomes = run(place, &modules)?;
        // The first ones remove most.
        match outcomes.iter().position(|new| same_kind(&new[0], &outcome)) {
            Some(at) => {
                println!("seed {}: {} attempts, one of {} bytes", subject.seed, round.len(), size(&round[at].program));
                outcome = outcomes[at][0].clone();
                subject = round[at].clone();
                from = 0;
            }
            None => from += ATTEMPTS,
        }
    }
    Ok((subject, outcome))
}

fn size(program: &Program) -> usize {
    super::write::script(&[(0, program)]).len()
}

fn same_kind(new: &Outcome, old: &Outcome) -> bool {
    match (new, old) {
        (Outcome::Prints(_), Outcome::Prints(_)) => true,
        // A program that has lost too much fails for another reason.
        (Outcome::Fails(new), Outcome::Fails(old)) => first_line(new) == first_line(old),
        _ => false,
    }
}

fn first_line(text: &str) -> &str {
    text.lines()
        .find(|line| {
            line.contains("error") || line.contains("ERROR") || line.contains("exit status") || line.contains("died")
        })
        .unwrap_or_default()
}

fn as_subject(of: &Subject, program: Program) -> Option<Subject> {
    let expected = interpret::output((of.seed % TOGETHER) as usize, &program, of.limits)?;
    Some(Subject { program, expected, ..of.clone() })
}

/// Programs with one thing removed, the smallest first.
fn attempts(program: &Program) -> Vec<Program> {
    let mut all = Vec::new();
    for index in 0..program.handlers.len() {
        let mut smaller = program.clone();
        smaller.handlers.remove(index);
        all.push(smaller);
    }
    for (index, handler) in program.handlers.iter().enumerate() {
        for statements in remove_one(&handler.body.statements) {
            let mut smaller = program.clone();
            smaller.handlers[index].body.statements = statements;
            all.push(smaller);
        }
    }
    for (index, function) in program.functions.iter().enumerate() {
        for statements in remove_one(&function.body.statements) {
            let mut smaller = program.clone();
            smaller.functions[index].body.statements = statements;
            all.push(smaller);
        }
    }
    all.sort_by_key(size);
    // Unused globals and functions cost nothing, except for readers.
    let least = size(program);
    all.retain(|smaller| size(smaller) < least);
    all
}

/// All variants of the statements with one of them removed or simplified.
fn remove_one(statements: &[Statement]) -> Vec<Vec<Statement>> {
    let mut all = Vec::new();
    let half = statements.len() / 2;
    if half > 1 {
        all.push(statements[half..].to_vec());
        all.push(statements[..half].to_vec());
    }
    for (index, statement) in statements.iter().enumerate() {
        let with = |others: Vec<Statement>| [&statements[..index], &others, &statements[index + 1..]].concat();
        all.push(with(Vec::new()));
        all.extend(simpler(statement).into_iter().map(with));
    }
    all
}

/// Replacements for a statement.
fn simpler(statement: &Statement) -> Vec<Vec<Statement>> {
    let mut all: Vec<Vec<Statement>> = Vec::new();
    match statement {
        Statement::If(condition, then, otherwise) => {
            all.push(then.clone());
            all.push(otherwise.clone());
            all.extend(
                remove_one(then)
                    .into_iter()
                    .map(|then| vec![Statement::If(condition.clone(), then, otherwise.clone())]),
            );
            all.extend(
                remove_one(otherwise)
                    .into_iter()
                    .map(|otherwise| vec![Statement::If(condition.clone(), then.clone(), otherwise)]),
            );
            all.extend(
                parts(condition)
                    .into_iter()
                    .map(|condition| vec![Statement::If(condition, then.clone(), otherwise.clone())]),
            );
        }
        Statement::While(condition, body) => {
            all.extend(remove_one(body).into_iter().map(|body| vec![Statement::While(condition.clone(), body)]));
        }
        Statement::For(first, condition, step, body) => {
            all.extend(
                remove_one(body)
                    .into_iter()
                    .map(|body| vec![Statement::For(first.clone(), condition.clone(), step.clone(), body)]),
            );
        }
        Statement::Foreach(foreach) => {
            let with = |change: &dyn Fn(&mut Foreach)| {
                let mut foreach = foreach.clone();
                change(&mut foreach);
                vec![Statement::Foreach(foreach)]
            };
            all.extend(remove_one(&foreach.body).into_iter().map(|body| with(&|foreach| foreach.body = body.clone())));
            if foreach.slice.is_some() {
                all.push(with(&|foreach| foreach.slice = None));
            }
            if foreach.limit.is_some() {
                all.push(with(&|foreach| foreach.limit = None));
            }
            if foreach.sort.is_some() {
                all.push(with(&|foreach| foreach.sort = None));
            }
        }
        Statement::Try(body, caught, handling) => {
            all.push(body.clone());
            all.extend(remove_one(body).into_iter().map(|body| vec![Statement::Try(body, *caught, handling.clone())]));
            all.extend(
                remove_one(handling).into_iter().map(|handling| vec![Statement::Try(body.clone(), *caught, handling)]),
            );
        }
        Statement::Block(statements) => all.push(statements.clone()),
        Statement::Do(expression) => {
            all.extend(
                parts(expression).into_iter().filter(has_effect).map(|expression| vec![Statement::Do(expression)]),
            );
        }
        Statement::Return(expression) => {
            all.extend(parts(expression).into_iter().map(|part| vec![Statement::Return(part)]));
        }
        Statement::Print(print) => {
            all.extend(simpler_prints(print).into_iter().map(|print| vec![Statement::Print(print)]));
        }
        _ => {}
    }
    all
}

/// The compiler removes those without effect.
fn has_effect(expression: &Expression) -> bool {
    matches!(expression, Expression::Assign(..) | Expression::Update(..) | Expression::Step(..) | Expression::Feed(..))
}

fn simpler_prints(print: &Print) -> Vec<Print> {
    let mut all = Vec::new();
    for index in 0..print.arguments.len() {
        let least = if matches!(print.form, Form::Delimited(_) | Form::DelimitedLine(_)) { 2 } else { 1 };
        if !matches!(print.form, Form::Formatted(_)) && print.arguments.len() > least {
            let mut smaller = print.clone();
            smaller.arguments.remove(index);
            all.push(smaller);
        }
        for part in parts(&print.arguments[index]) {
            let mut smaller = print.clone();
            smaller.arguments[index] = part;
            all.push(smaller);
        }
    }
    if let Form::Formatted(pieces) = &print.form {
        let mut argument = 0;
        for (index, piece) in pieces.iter().enumerate() {
            let mut smaller = print.clone();
            if let Form::Formatted(pieces) = &mut smaller.form {
                pieces.remove(index);
            }
            if let Piece::Directive(directive) = piece {
                let taken = 1 + [directive.width, directive.precision]
                    .iter()
                    .filter(|width| **width == Some(Width::Argument))
                    .count();
                smaller.arguments.drain(argument..argument + taken);
                argument += taken;
            }
            all.push(smaller);
        }
        all.retain(|print| !matches!(&print.form, Form::Formatted(pieces) if pieces.is_empty()));
    }
    all
}

/// Replacements for an expression: a literal, an operand of the same type, itself with a simpler operand.
fn parts(expression: &Expression) -> Vec<Expression> {
    let mut all = match expression {
        Expression::Number(number, _) if *number != 1 => vec![Expression::Number(1, false)],
        Expression::Number(..) => Vec::new(),
        Expression::Text(text) if text.as_slice() != b"a" => vec![Expression::Text(b"a".to_vec())],
        Expression::Text(_) => Vec::new(),
        _ if is_text(expression) => vec![Expression::Text(b"a".to_vec())],
        _ => vec![Expression::Number(1, false), Expression::Number(0, false)],
    };
    if matches!(expression, Expression::Read(Variable::Local(_) | Variable::Global(_))) {
        // Its type may depend on it.
        all.clear();
    }
    let operands = operands(expression);
    for operand in &operands {
        if is_text(operand) == is_text(expression) && is_text_known(operand) {
            all.push((*operand).clone());
        }
    }
    for (index, operand) in operands.iter().enumerate() {
        for part in parts(operand) {
            let mut smaller = expression.clone();
            if let Some(operand) = operands_mut(&mut smaller).into_iter().nth(index) {
                *operand = part;
                all.push(smaller);
            }
        }
    }
    all
}

/// The tree does not have the types of variables and calls.
fn is_text_known(expression: &Expression) -> bool {
    !matches!(expression, Expression::Read(_) | Expression::Assign(..) | Expression::Call(..))
}

fn is_text(expression: &Expression) -> bool {
    match expression {
        Expression::Text(_)
        | Expression::Binary(Binary::Concat, ..)
        | Expression::Update(Binary::Concat, ..)
        | Expression::Sprint(_) => true,
        Expression::Builtin(builtin, _) => builtin.signature().2 == Type::Text,
        Expression::Ternary(_, yes, _) => is_text(yes),
        Expression::Assign(_, value) => is_text(value),
        _ => false,
    }
}

fn operands(expression: &Expression) -> Vec<&Expression> {
    match expression {
        Expression::Unary(_, operand) | Expression::Match(operand, ..) | Expression::Bucket(_, operand) => {
            vec![operand]
        }
        Expression::Binary(_, left, right) => vec![left, right],
        Expression::Ternary(condition, yes, no) => vec![condition, yes, no],
        Expression::Assign(_, value) | Expression::Update(_, _, value) | Expression::Feed(_, value) => vec![value],
        Expression::Call(_, arguments) | Expression::Builtin(_, arguments) => arguments.iter().collect(),
        Expression::Sprint(print) => print.arguments.iter().collect(),
        Expression::Read(Variable::Element(_, keys)) => keys.iter().collect(),
        _ => Vec::new(),
    }
}

/// The same, in the same order.
fn operands_mut(expression: &mut Expression) -> Vec<&mut Expression> {
    match expression {
        Expression::Unary(_, operand) | Expression::Match(operand, ..) | Expression::Bucket(_, operand) => {
            vec![operand]
        }
        Expression::Binary(_, left, right) => vec![left, right],
        Expression::Ternary(condition, yes, no) => vec![condition, yes, no],
        Expression::Assign(_, value) | Expression::Update(_, _, value) | Expression::Feed(_, value) => vec![value],
        Expression::Call(_, arguments) | Expression::Builtin(_, arguments) => arguments.iter_mut().collect(),
        Expression::Sprint(print) => print.arguments.iter_mut().collect(),
        Expression::Read(Variable::Element(_, keys)) => keys.iter_mut().collect(),
        _ => Vec::new(),
    }
}
