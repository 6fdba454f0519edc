//! The vmlinux or one module: the file that is loaded, and the one with its debug information.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

use crate::debuginfo::{self, Address, DebugInfo, Elf, Symbol};

/// A place in a module as the running kernel can find it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// A symbol that the module has once.
    pub symbol: String,
    /// Bytes from it.
    pub offset: u64,
}

pub struct Object {
    name: String,
    kernel: bool,
    /// What is loaded: has the build-id.
    binary: Rc<Elf>,
    /// What has symbols and debug information.
    debug_file: Rc<Elf>,
    debug: OnceCell<Result<DebugInfo, debuginfo::Error>>,
    anchors: OnceCell<Vec<Symbol>>,
}

impl Object {
    pub(super) fn new(name: &str, kernel: bool, binary: Rc<Elf>, debug_file: Rc<Elf>) -> Object {
        Object { name: name.to_string(), kernel, binary, debug_file, debug: OnceCell::new(), anchors: OnceCell::new() }
    }

    /// Module name, or `kernel`.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn path(&self) -> &Path {
        self.binary.path()
    }

    pub fn debug_path(&self) -> &Path {
        self.debug_file.path()
    }

    /// Empty if the object has none.
    pub fn build_id(&self) -> &[u8] {
        self.binary.build_id()
    }

    /// Kernel: link-time address of the build-id's bytes.
    pub fn build_id_address(&self) -> Option<u64> {
        self.binary.build_id_address().or_else(|| self.debug_file.build_id_address()).filter(|_| self.kernel)
    }

    pub fn is_kernel(&self) -> bool {
        self.kernel
    }

    /// Link-time address of a symbol of the kernel.
    pub fn symbol_address(&self, name: &str) -> Option<u64> {
        self.debug_file.symbol_address(name)
    }

    pub fn debug(&self) -> Result<&DebugInfo, debuginfo::Error> {
        let debug = self.debug.get_or_init(|| DebugInfo::open(self.debug_file.clone()));
        debug.as_ref().map_err(Clone::clone)
    }

    /// The nearest function symbol before an address of a module that the module has only once; None in code that the
    /// kernel discards after initialisation, and where no such symbol is.
    pub fn anchor(&self, address: Address) -> Option<Anchor> {
        let section = self.debug_file.section_name(address);
        if section.starts_with(".init") || section.starts_with(".exit") {
            return None;
        }
        let anchors = self.anchors.get_or_init(|| unique(&self.debug_file));
        let before = anchors.partition_point(|symbol| symbol.address <= address).checked_sub(1)?;
        let symbol = &anchors[before];
        (symbol.address.section == address.section)
            .then(|| Anchor { symbol: symbol.name.clone(), offset: address.offset - symbol.address.offset })
    }
}

/// Function symbols that occur once, by address.
fn unique(elf: &Elf) -> Vec<Symbol> {
    let mut seen: HashMap<String, u32> = HashMap::new();
    for name in elf.symbol_names() {
        *seen.entry(name).or_default() += 1;
    }
    let mut symbols = elf.functions();
    // kallsyms of a module leaves out the marks that tools put there.
    symbols.retain(|symbol| seen.get(&symbol.name) == Some(&1) && !symbol.name.starts_with("__pfx_") && !symbol.name.starts_with('.'));
    symbols.sort_by(|a, b| a.address.cmp(&b.address));
    symbols
}
