// SPDX-License-Identifier: GPL-2.0-or-later

//! Types of globals, functions, parameters and locals, found from how they are used.
//!
//! Everything with a type has a [`TypeVar`]; a use unifies two of them or gives one a type. A variable remembers the place
//! that determined its type, so that an error can show both places.

use crate::program::{Type, id};
use spile_source::Span;

/// Most keys of an array, as in SystemTap.
pub const MAX_KEYS: usize = 9;

id!(/** A type still to be found: index into [`Types`]. */ TypeVar);

#[derive(Debug)]
struct Node {
    parent: TypeVar,
    /// Only in roots: the type, and the place that determined it.
    known: Option<(Type, Span)>,
}

/// A contradiction between two places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The type known before, and the place that determined it.
    pub first: (Type, Span),
    /// The type that contradicts it, and where.
    pub second: (Type, Span),
}

/// Union-find over type variables.
#[derive(Debug, Default)]
pub struct Types {
    nodes: Vec<Node>,
}

impl Types {
    /// A variable without a known type.
    pub fn fresh(&mut self) -> TypeVar {
        let var = TypeVar(self.nodes.len() as u32);
        self.nodes.push(Node { parent: var, known: None });
        var
    }

    /// A variable of a known type, determined at `span`.
    pub fn known(&mut self, ty: Type, span: Span) -> TypeVar {
        let var = self.fresh();
        self.nodes[var.index()].known = Some((ty, span));
        var
    }

    /// The type, if it is known.
    pub fn get(&mut self, var: TypeVar) -> Option<Type> {
        self.decided(var).map(|(ty, _)| ty)
    }

    /// The type and the place that determined it.
    pub fn decided(&mut self, var: TypeVar) -> Option<(Type, Span)> {
        let root = self.root(var);
        self.nodes[root.index()].known
    }

    /// Sets the type; on a conflict the earlier one stays.
    pub fn set(&mut self, var: TypeVar, ty: Type, span: Span) -> Result<(), Conflict> {
        let root = self.root(var);
        match self.nodes[root.index()].known {
            Some(first) if first.0 != ty => Err(Conflict { first, second: (ty, span) }),
            Some(_) => Ok(()),
            None => {
                self.nodes[root.index()].known = Some((ty, span));
                Ok(())
            }
        }
    }

    /// Unifies both types. Error: both are known and differ; then neither changes.
    pub fn equate(&mut self, a: TypeVar, b: TypeVar) -> Result<(), Conflict> {
        let (a, b) = (self.root(a), self.root(b));
        if a == b {
            return Ok(());
        }
        match (self.nodes[a.index()].known, self.nodes[b.index()].known) {
            (Some(first), Some(second)) if first.0 != second.0 => return Err(Conflict { first, second }),
            (None, known) => self.nodes[a.index()].known = known,
            _ => {}
        }
        self.nodes[b.index()].parent = a;
        Ok(())
    }

    /// What all unified variables share.
    pub fn root(&mut self, mut var: TypeVar) -> TypeVar {
        while self.nodes[var.index()].parent != var {
            let grandparent = self.nodes[self.nodes[var.index()].parent.index()].parent;
            self.nodes[var.index()].parent = grandparent;
            var = grandparent;
        }
        var
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spile_source::FileId;

    fn at(start: usize) -> Span {
        Span::new(FileId(0), start, start + 1)
    }

    #[test]
    fn a_type_reaches_all_that_were_equated() {
        let mut types = Types::default();
        let (a, b, c) = (types.fresh(), types.fresh(), types.fresh());
        types.equate(a, b).unwrap();
        types.equate(b, c).unwrap();
        assert_eq!(types.get(a), None);
        types.set(c, Type::String, at(7)).unwrap();
        assert_eq!(types.decided(a), Some((Type::String, at(7))));
    }

    #[test]
    fn a_conflict_names_both_places() {
        let mut types = Types::default();
        let a = types.known(Type::Long, at(1));
        let b = types.known(Type::String, at(2));
        let conflict = Conflict { first: (Type::Long, at(1)), second: (Type::String, at(2)) };
        assert_eq!(types.equate(a, b), Err(conflict));
        assert_eq!(types.get(a), Some(Type::Long));
        assert_eq!(types.get(b), Some(Type::String));
    }
}
