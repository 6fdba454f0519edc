// SPDX-License-Identifier: GPL-2.0-or-later

//! Contexts whose variables are numbers that no debug information describes: arguments of markers and of system calls.

use std::rc::Rc;

use crate::probe::{Context, ContextError, Location, TypedLocation};
use crate::program::LongExpr;
use spile_debuginfo::TypeId;
use spile_debuginfo::target::{Object, number};

/// Variables by name, each with its value or why it has none.
pub(super) struct NamedValues {
    /// In the order in which `$$vars` shows them.
    pub values: Vec<(String, Result<LongExpr, String>)>,
    /// `$$` words whose value is known.
    pub texts: Vec<(&'static str, String)>,
    /// What has to hold at a hit.
    pub guard: Option<LongExpr>,
    /// The program that types of casts are looked for in.
    pub object: Option<Rc<Object>>,
    /// The registers are those of the program.
    pub has_registers: bool,
    /// The probe may be hit anywhere in the program, not at an instruction that is known.
    pub anywhere: bool,
    /// For messages.
    pub place: String,
    long: Option<(Rc<Object>, TypeId)>,
}

impl NamedValues {
    /// Without variables.
    pub fn new(place: String) -> NamedValues {
        NamedValues {
            values: Vec::new(),
            texts: Vec::new(),
            guard: None,
            object: None,
            has_registers: false,
            anywhere: false,
            place,
            long: number().ok(),
        }
    }
}

impl Context for NamedValues {
    fn variable(&self, name: &str) -> Result<TypedLocation, ContextError> {
        let known = self.values.iter().find(|(known, _)| known == name).map(|(_, value)| value);
        let Some(value) = known else {
            return Err(match name {
                "return" => ContextError::NotReturn,
                _ if self.values.is_empty() && self.object.is_none() => ContextError::None,
                _ => ContextError::Unknown,
            });
        };
        let value = value.clone().map_err(|why| ContextError::NoValue(vec![why]))?;
        let (object, type_id) = self.long.clone().ok_or(ContextError::None)?;
        Ok(TypedLocation { object, type_id, location: Location::Value(value) })
    }

    fn parameters(&self) -> Vec<String> {
        self.values.iter().map(|(name, _)| name.clone()).collect()
    }

    fn text(&self, name: &str) -> Option<String> {
        self.texts.iter().find(|(known, _)| *known == name).map(|(_, text)| text.clone())
    }

    fn guard(&self) -> Option<LongExpr> {
        self.guard.clone()
    }

    fn has_variables(&self) -> bool {
        !self.values.is_empty() || !self.texts.is_empty()
    }

    fn has_registers(&self) -> bool {
        self.has_registers
    }

    fn is_anywhere(&self) -> bool {
        self.anywhere
    }

    fn object(&self) -> Option<Rc<Object>> {
        self.object.clone()
    }

    fn place(&self) -> String {
        self.place.clone()
    }
}
