// SPDX-License-Identifier: GPL-2.0-or-later

//! Arrays: elements in order of creation, found by linear search.

use super::{Evaluated, error};
use crate::model::tree::{Size, Value};

/// An array of a script.
pub struct Array<T> {
    elements: Vec<(Vec<Value>, T)>,
    entries: usize,
    size: Size,
}

impl<T> Array<T> {
    /// Empty; it takes `entries` elements at most.
    pub fn new(entries: usize, size: Size) -> Array<T> {
        Array { elements: Vec::new(), entries, size }
    }

    /// The element with these keys, if there is one.
    pub fn get(&self, keys: &[Value]) -> Option<&T> {
        self.elements.iter().find(|(own, _)| own == keys).map(|(_, element)| element)
    }

    /// The element, created if missing.
    pub fn make(&mut self, keys: &[Value], new: T) -> Evaluated<&mut T> {
        let at = match self.elements.iter().position(|(own, _)| own == keys) {
            Some(at) => at,
            None => {
                if self.elements.len() == self.entries {
                    self.make_room()?;
                }
                self.elements.push((keys.to_vec(), new));
                self.elements.len() - 1
            }
        };
        Ok(&mut self.elements[at].1)
    }

    fn make_room(&mut self) -> Evaluated<()> {
        if self.size.wraps {
            self.elements.remove(0);
            return Ok(());
        }
        match self.size.entries {
            Some(entries) => error(&format!("Array overflow, check size limit ({entries})")),
            None => error("Array overflow, check MAXMAPENTRIES"),
        }
    }

    /// Keys and values of all elements, oldest first.
    pub fn elements(&self) -> &[(Vec<Value>, T)] {
        &self.elements
    }

    /// Removes all elements with these keys; None matches any key.
    pub fn remove(&mut self, keys: &[Option<Value>]) {
        self.elements.retain(|(own, _)| !agree(own, keys));
    }

    /// Removes all elements.
    pub fn clear(&mut self) {
        self.elements.clear();
    }
}

/// Whether an element's keys match; None matches any key.
pub fn agree(own: &[Value], keys: &[Option<Value>]) -> bool {
    own.iter().zip(keys).all(|(own, key)| key.as_ref().is_none_or(|key| own == key))
}
