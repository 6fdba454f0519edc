// SPDX-License-Identifier: GPL-2.0-or-later

//! What a name stands for in the whole object, found once for each name: hundreds of units declare the same function, and to
//! find out means to read other units.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::quick::Quick;
use super::scan::Text;
use super::store::{Die, EntryError};
use crate::facts::{Body, FunctionId};

/// Answers so far, by the place of the name's string: the linker merges equal strings.
#[derive(Default)]
pub(super) struct ByName {
    /// The code of a function whose entries have none.
    pub bodies: Answers<Body>,
    /// The definition of an external function.
    pub definitions: Answers<FunctionId>,
    linked: Mutex<HashMap<Text, Arc<LinkedNames>>>,
}

/// Functions by their linkage names: each entry, and whether it is external.
pub(super) type LinkedNames = HashMap<Text, Vec<(Die, bool)>>;

impl ByName {
    /// What [`ByName::keep_linked`] was given for the name.
    pub fn linked(&self, name: Text) -> Option<Arc<LinkedNames>> {
        self.linked.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Keeps the functions of a name, all read at once: thousands may have it.
    pub fn keep_linked(&self, name: Text, found: LinkedNames) -> Arc<LinkedNames> {
        let found = Arc::new(found);
        self.linked.lock().unwrap_or_else(PoisonError::into_inner).insert(name, Arc::clone(&found));
        found
    }
}

/// Answers of one kind; None: there is none.
pub(super) struct Answers<T>(Mutex<HashMap<usize, Option<T>, Quick>>);

impl<T> Default for Answers<T> {
    fn default() -> Self {
        Answers(Mutex::default())
    }
}

impl<T: Clone> Answers<T> {
    /// The answer for the name, which `find` gives if it is not known.
    pub fn of(
        &self,
        name: Text,
        find: impl FnOnce() -> Result<Option<T>, EntryError>,
    ) -> Result<Option<T>, EntryError> {
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = name.as_ptr() as usize;
        if let Some(answer) = known().get(&place) {
            return Ok(answer.clone());
        }
        let answer = find()?;
        known().insert(place, answer.clone());
        Ok(answer)
    }
}
