//! Debug information of one object: which functions it has and where, what variables they have and where these lie,
//! what types look like. Knows nothing of scripts.
//!
//! [`DebugInfo::open`] maps the file; units are parsed when asked for. The first question by name scans the top level
//! of all units, in parallel, into an index that is kept. Ids hold for the [`DebugInfo`] that gave them.
//!
//! Terms are DWARF's: *unit*, *DIE*, *abstract origin*, *inlined instance*, *location list*, *CFA*.

mod elf;
mod error;
mod functions;
mod index;
mod location;
mod types;
mod units;
mod variables;

pub use elf::{Address, Elf, Symbol};
pub use error::Error;
pub use functions::{Body, Function, FunctionId, FunctionPattern, InlinedInstance};
pub use location::{Location, Op};
pub use types::{BaseEncoding, FoundMember, Member, MemberBits, MemberError, Type, TypeId};
pub use variables::{FoundVariable, Unavailable, Variable};

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

/// Sections live as long as the process: a compiler opens few objects and ends soon, and every id, name and unit may
/// then borrow from them.
type Reader = gimli::EndianSlice<'static, gimli::LittleEndian>;
type Unit = gimli::Unit<Reader>;
type Entry = gimli::DebuggingInformationEntry<Reader>;

/// One object's debug information.
pub struct DebugInfo {
    elf: Rc<Elf>,
    dwarf: gimli::Dwarf<Reader>,
    frames: gimli::DebugFrame<Reader>,
    /// Headers of all units, by their offset.
    headers: Vec<gimli::UnitHeader<Reader>>,
    units: RefCell<HashMap<usize, Rc<Unit>>>,
    index: OnceCell<index::Index>,
    types: RefCell<types::Interned>,
    functions: RefCell<functions::Known>,
}

impl DebugInfo {
    /// The debug information in `elf`. An error if it has none, or none that can be read.
    pub fn open(elf: Rc<Elf>) -> Result<DebugInfo, Error> {
        let section = |id: gimli::SectionId| -> Result<Reader, Error> {
            Ok(gimli::EndianSlice::new(elf.section(id.name())?, gimli::LittleEndian))
        };
        if !elf.has_debug_info() {
            return Err(Error::NoDebugInfo);
        }
        let mut dwarf = gimli::Dwarf::load(section)?;
        dwarf.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::Duplicates);
        let mut frames = gimli::DebugFrame::from(section(gimli::SectionId::DebugFrame)?);
        frames.set_address_size(8);
        let mut headers = Vec::new();
        let mut units = dwarf.units();
        while let Some(header) = units.next()? {
            headers.push(header);
        }
        Ok(DebugInfo {
            elf,
            dwarf,
            frames,
            headers,
            units: RefCell::default(),
            index: OnceCell::new(),
            types: RefCell::default(),
            functions: RefCell::default(),
        })
    }
}
