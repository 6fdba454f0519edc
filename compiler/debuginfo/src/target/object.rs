// SPDX-License-Identifier: GPL-2.0-or-later

//! vmlinux, one module or one program: the file that is loaded, and the one with its debug information.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use super::reserved::{self, Which};
use crate::object::{CodeSum, DataSymbol, Edges, EntryPoints, Flow};
use crate::{
    self as debuginfo, Address, CodeSymbol, DebugInfo, Elf, FunctionCode, Marker, Patched, Reason, Reserved, Returning,
    SymbolOffset, ThreadBlock,
};
use spile_base::cache::Cache;

/// From this many functions on, the code of all is searched at once, and what is found is stored.
const MANY: usize = 500;

/// What an object is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Kernel,
    Module,
    /// A program or shared library in user space.
    Program,
    /// Types of a header of user space.
    Header,
}

/// One object of the kernel, or one program or library.
pub struct Object {
    name: String,
    path: PathBuf,
    kind: Kind,
    /// The file with debug information; it has the symbols and sections of the loaded one too.
    elf: Arc<Elf>,
    debug: OnceCell<Result<DebugInfo, debuginfo::Error>>,
    cache: Option<Arc<Cache>>,
    /// The kernel, for a module without DWARF.
    base: Option<Rc<Object>>,
    /// Where no probe may be placed, by the addresses of the file with debug information; None: no file has the code.
    reserved: OnceCell<Option<Reserved>>,
    /// The file that has the code, and jumps that its instructions do not show; None: no file has it.
    edges: OnceCell<Option<(Arc<Elf>, Edges)>>,
    /// Of the functions asked for so far, by the addresses of their symbols.
    entrances: RefCell<BTreeMap<u64, EntryPoints>>,
    /// The same of all functions: stored by an earlier run, or found because many were asked for. None: neither.
    all_entrances: OnceCell<Option<Reserved>>,
    found_entrances: OnceCell<Option<Reserved>>,
    /// Of a program, the file that is mapped, where another one has the debug information.
    mapped: Option<Arc<Elf>>,
    code_sum: OnceCell<Option<CodeSum>>,
}

/// The code of some functions of an object.
pub struct Code<'o> {
    object: &'o Object,
    /// The file that has it.
    elf: Arc<Elf>,
    patched: Patched,
}

impl Code<'_> {
    /// The code of the function that has the address, one of those that were asked for; None if it is not in the file.
    pub fn of_function(&self, address: Address) -> Option<FunctionCode> {
        self.patched.function_code(&self.elf, self.object.same_in(&self.elf, address)?)
    }
}

impl Object {
    /// An object of a kind; `base` is the kernel whose BTF a module's BTF continues.
    pub(super) fn new(
        name: String,
        path: PathBuf,
        kind: Kind,
        elf: Elf,
        cache: Option<Arc<Cache>>,
        base: Option<Rc<Object>>,
    ) -> Object {
        Object {
            name,
            path,
            kind,
            elf: Arc::new(elf),
            debug: OnceCell::new(),
            cache,
            base,
            reserved: OnceCell::new(),
            edges: OnceCell::new(),
            entrances: RefCell::default(),
            all_entrances: OnceCell::new(),
            found_entrances: OnceCell::new(),
            mapped: None,
            code_sum: OnceCell::new(),
        }
    }

    /// A program or library: the file that processes map and, if another one has it, that with debug information or symbols.
    /// `name`: its path in the system that it is of.
    pub(super) fn program(
        name: String,
        path: PathBuf,
        mapped: Elf,
        debug: Option<Elf>,
        cache: Option<Arc<Cache>>,
    ) -> Object {
        match debug {
            None => Object::new(name, path, Kind::Program, mapped, cache, None),
            Some(debug) => {
                let object = Object::new(name, path, Kind::Program, debug, cache, None);
                Object { mapped: Some(Arc::new(mapped)), ..object }
            }
        }
    }

    /// `kernel`, the module's name as the kernel spells it (`_`, never `-`), or the program's path.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file that is loaded, for a module; for the kernel the vmlinux with debug information.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file with debug information.
    pub fn debug_path(&self) -> &Path {
        self.elf.path()
    }

    /// Empty where the object was linked without one.
    pub fn build_id(&self) -> &[u8] {
        self.elf.build_id()
    }

    /// What tells it from other builds where it has no build-id; None: it has one, or is no program.
    pub fn code_sum(&self) -> Option<CodeSum> {
        if !self.is_program() || !self.build_id().is_empty() {
            return None;
        }
        *self.code_sum.get_or_init(|| crate::object::code_sum(self.mapped().path()).ok().flatten())
    }

    /// Link-time address of the build-id's bytes, in the kernel's `.notes`; None for modules.
    pub fn build_id_address(&self) -> Option<u64> {
        if self.is_kernel() { self.elf.build_id_address() } else { None }
    }

    /// Whether it is the kernel, not a module or a program.
    pub fn is_kernel(&self) -> bool {
        self.kind == Kind::Kernel
    }

    /// Whether it is a program or library in user space.
    pub fn is_program(&self) -> bool {
        self.kind == Kind::Program
    }

    /// Whether objects of its types are in the memory of processes: it is a program, or a header's types.
    pub fn reads_user(&self) -> bool {
        matches!(self.kind, Kind::Program | Kind::Header)
    }

    /// The file that processes map, of a program.
    pub fn mapped(&self) -> &Arc<Elf> {
        self.mapped.as_ref().unwrap_or(&self.elf)
    }

    /// The file with its symbols and debug information.
    pub(super) fn elf(&self) -> &Elf {
        &self.elf
    }

    /// The markers of a program; symbols that their arguments name may be in the file with its debug information.
    pub fn markers(&self) -> Vec<Marker> {
        self.mapped().markers(&self.elf)
    }

    /// Where in the program's file the bytes at a link-time address are; None if they are in none of the parts that are mapped
    /// from the file.
    pub fn file_offset(&self, address: Address) -> Option<u64> {
        self.mapped().file_offset(address.offset)
    }

    /// Whether addresses are known; a boot image has no symbols, so the running kernel finds functions by name.
    pub fn has_symbols(&self) -> bool {
        self.elf.has_symbols()
    }

    /// Whether its debug information has been read and is only BTF.
    pub fn is_btf(&self) -> bool {
        matches!(self.debug.get(), Some(Ok(debug)) if debug.is_btf())
    }

    /// Whether its debug information has been read and is only a symbol table.
    pub fn is_symbols(&self) -> bool {
        matches!(self.debug.get(), Some(Ok(debug)) if debug.is_symbols())
    }

    /// Of a program whose debug information has been read and is in part in files of its own, the name of one that was not found.
    pub fn missing_part(&self) -> Option<String> {
        self.debug.get()?.as_ref().ok()?.missing_part()
    }

    /// The symbol's link-time address (of a module: its offset in its section); None if there is no such symbol.
    pub fn symbol_address(&self, name: &str) -> Option<u64> {
        self.elf.symbol_address(name).ok()?.map(|address| address.offset)
    }

    /// The same with its section.
    pub fn symbol_place(&self, name: &str) -> Option<Address> {
        self.elf.symbol_address(name).ok()?
    }

    /// A place in the code by a link-time address, or for a module by the offset in `.text`; None if no code is there.
    pub fn code_address(&self, number: u64) -> Option<Address> {
        self.elf.code_address(number)
    }

    /// How the running kernel can find a place in a module's code: see [`Elf::anchor`].
    pub fn anchor(&self, address: Address) -> Option<SymbolOffset> {
        self.elf.anchor(address).ok()?
    }

    /// How the running kernel can find a variable of a module: see [`Elf::data_anchor`].
    pub fn data_anchor(&self, address: Address) -> Option<SymbolOffset> {
        self.elf.data_anchor(address).ok()?
    }

    /// The function's symbol at or nearest before the address.
    pub fn near(&self, address: Address) -> Option<SymbolOffset> {
        self.elf.near(address)
    }

    /// The function's symbol of whose code the address is: see [`Elf::containing`].
    pub fn containing(&self, address: Address) -> Option<SymbolOffset> {
        self.elf.containing(address)
    }

    /// The code of the functions that have the addresses, as in the file; None if no file here has the code.
    pub fn code_of(&self, addresses: &[Address]) -> Option<Code<'_>> {
        let elf = self.open_code(*addresses.first()?)?;
        let patched = Patched::of(&elf, addresses.iter().filter_map(|address| self.same_in(&elf, *address)))?;
        Some(Code { object: self, elf, patched })
    }

    /// Why the kernel refuses a probe at the address; None if it does not, or no file here has the code.
    pub fn reserved(&self, address: Address) -> Option<Reason> {
        self.reserved_places()?.at(&self.elf, address)
    }

    /// All places where the kernel refuses a probe; None where no file here has the code.
    pub fn reserved_places(&self) -> Option<&Reserved> {
        let read = || {
            if self.is_program() {
                return None;
            }
            if let Some(exported) = self.debug().ok().and_then(DebugInfo::reserved) {
                return Some(exported);
            }
            reserved::open(&self.elf, self.cache.as_deref(), Which::Tables, || {
                let elf = self.open_code(self.elf.first_code()?)?;
                Some(Reserved::of(&elf)?.moved(&elf, &self.elf))
            })
        };
        self.reserved.get_or_init(read).as_ref()
    }

    /// From the places where code of one line begins, those where an execution of it begins: a place that is reached only
    /// through another one is left out, unless it is in a loop that the other is not in. None if no file here has the code,
    /// or it cannot be read.
    pub fn first_reached(&self, places: &[Address]) -> Option<Vec<Address>> {
        let (elf, edges) = self.edges(*places.first()?)?;
        let flat = places.iter().map(|place| elf.flat(self.same_in(elf, *place)?)).collect::<Option<Vec<u64>>>()?;
        let first = Flow::of(elf, edges, &flat)?.first_reached(&flat);
        Some(places.iter().zip(&flat).filter(|(_, at)| first.contains(at)).map(|(place, _)| *place).collect())
    }

    /// Whether code is entered in the middle of what a jump of five bytes at the address would replace, by jumps that the kernel
    /// does not look at when it optimises a kprobe to a jump: those between a function and its cold part, of jump labels
    /// that are off, and where faults continue. None if no file here has the code, or it cannot be read.
    pub fn is_entered_under_jump(&self, address: Address) -> Option<bool> {
        let exported = || self.reserved_places()?.is_entered_under_jump(self.elf.flat(address)?);
        self.of_function(address, EntryPoints::are_under_jump_at, Reserved::is_entered_under_jump).or_else(exported)
    }

    /// Whether the instruction at the address is a direct call with a prefix. Kernels since 5.13 that execute it for a kprobe
    /// return to the sixth byte, which is its last one (arch/x86/include/asm/text-patching.h, int3_emulate_call()). None
    /// as above.
    pub fn is_prefixed_call(&self, address: Address) -> Option<bool> {
        let exported = || self.reserved_places()?.is_prefixed_call(self.elf.flat(address)?);
        self.of_function(address, EntryPoints::has_prefixed_call_at, Reserved::is_prefixed_call).or_else(exported)
    }

    /// [`Object::reserved_places`] for an index, with the places found in the code.
    pub fn reserved_for_export(&self) -> Option<Reserved> {
        let elf = self.open_code(self.elf.first_code()?)?;
        let places = Reserved::of(&elf)?.moved(&elf, &self.elf);
        Some(places.with_flow(self.entrances_of_all()))
    }

    /// What is found in the code of all functions; from the cache, or stored there. None: no file here has the code.
    fn entrances_of_all(&self) -> Option<Reserved> {
        reserved::open(&self.elf, self.cache.as_deref(), Which::Flow, || {
            let elf = self.open_code(self.elf.first_code()?)?;
            Some(Reserved::flow_of(&elf)?.moved(&elf, &self.elf))
        })
    }

    /// Makes what is made for the first scripts and listings, and stores it in the cache. True: something was made.
    pub fn prepare(&self) -> Result<bool, debuginfo::Error> {
        let made_debug = self.debug()?.prepare()?;
        let cache = self.cache.as_deref();
        let is_stored = |which| reserved::find(&self.elf, cache, which).is_some();
        let made_tables = !is_stored(Which::Tables) && self.reserved_places().is_some();
        let made_flow = !is_stored(Which::Flow) && self.entrances_of_all().is_some();
        Ok(made_debug || made_tables || made_flow)
    }

    /// An answer about the function that has the address, of [`EntryPoints`], or of those of all functions.
    fn of_function(
        &self,
        address: Address,
        ask: impl Fn(&EntryPoints, u64) -> bool,
        ask_all: impl Fn(&Reserved, u64) -> Option<bool>,
    ) -> Option<bool> {
        if self.is_program() {
            return None;
        }
        let stored = || reserved::find(&self.elf, self.cache.as_deref(), Which::Flow);
        let all = self.all_entrances.get_or_init(stored).as_ref().or_else(|| self.found_entrances.get()?.as_ref());
        if let Some(answer) = all.and_then(|all| ask_all(all, self.elf.flat(address)?)) {
            return Some(answer);
        }
        let (elf, edges) = self.edges(address)?;
        let flat = elf.flat(self.same_in(elf, address)?)?;
        let mut known = self.entrances.borrow_mut();
        let near = known.range(..=flat).next_back().filter(|(_, entrances)| entrances.has(flat));
        if let Some((_, entrances)) = near {
            return Some(ask(entrances, flat));
        }
        let entrances = EntryPoints::of(elf, edges, flat)?;
        let answer = ask(&entrances, flat);
        known.insert(entrances.start(), entrances);
        if known.len() >= MANY {
            self.found_entrances.get_or_init(|| self.entrances_of_all());
        }
        Some(answer)
    }

    /// The file that has the code at the address, and the jumps in it that instructions do not show.
    fn edges(&self, address: Address) -> Option<&(Arc<Elf>, Edges)> {
        let read = || {
            let elf = self.open_code(address)?;
            let edges = Edges::of(&elf)?;
            Some((elf, edges))
        };
        self.edges.get_or_init(read).as_ref()
    }

    /// The address in the file that has the code.
    fn same_in(&self, elf: &Elf, address: Address) -> Option<Address> {
        match address.section {
            Some(_) => elf.code_in(self.elf.section_of(address)?.name.as_str(), address.offset),
            None => Some(address),
        }
    }

    /// Some files with debug information have the sections of the loaded one without their contents.
    fn open_code(&self, address: Address) -> Option<Arc<Elf>> {
        if let Some(mapped) = &self.mapped {
            return Some(mapped.clone());
        }
        if self.elf.has_contents(address) {
            return Some(self.elf.clone());
        }
        let own =
            Elf::open(&self.path).ok().filter(|own| !self.is_kernel() && own.build_id() == self.elf.build_id())?;
        Some(Arc::new(own))
    }

    /// Name of the section that the address is in.
    pub fn section_name(&self, address: Address) -> Option<&str> {
        self.elf.section_of(address).map(|section| section.name.as_str())
    }

    /// Whether the address is in the section that each CPU has its own copy of (vmlinux.lds.h, PERCPU_SECTION).
    pub fn is_per_cpu(&self, address: Address) -> bool {
        self.elf.section_of(address).is_some_and(|section| section.name.starts_with(".data..percpu"))
    }

    /// Whether the locations of variables are known at that place of the code: [`DebugInfo::has_place`].
    pub fn has_place(&self, address: Address) -> bool {
        self.debug().is_ok_and(|debug| debug.has_place(address))
    }

    /// A variable of a program by its symbol tables; not one that each thread has its own of.
    pub fn data_symbol(&self, name: &str) -> Option<DataSymbol> {
        self.elf.data_symbol(name).or_else(|| self.mapped().data_symbol(name))
    }

    /// The names of all.
    pub fn data_symbols(&self) -> Vec<String> {
        let own = self.elf.data_symbols();
        if own.is_empty() { self.mapped().data_symbols() } else { own }
    }

    /// Functions of a program by its symbol tables only, whose names match a shell pattern.
    pub fn functions_by_symbol(&self, pattern: &str) -> Vec<CodeSymbol> {
        let own = self.elf.functions_like(pattern);
        if own.is_empty() { self.mapped().functions_like(pattern) } else { own }
    }

    /// Names of the functions that begin at an address of a program, by its symbol tables.
    pub fn functions_at(&self, address: Address) -> Vec<String> {
        let mut names = [self.elf.functions_at(address), self.mapped().functions_at(address)].concat();
        names.sort();
        names.dedup();
        names
    }

    /// What the function of a program that begins there does with its return address; None: it is of the kernel.
    pub fn returning(&self, function: Address) -> Option<Returning> {
        let named = if self.elf.functions_at(function).is_empty() { self.mapped() } else { &self.elf };
        self.is_program().then(|| named.returning(self.mapped(), function))
    }

    /// Whether the kernel refuses a probe at an instruction of a program: see [`Elf::is_unsteppable`].
    pub fn is_unsteppable(&self, address: Address) -> bool {
        self.mapped().is_unsteppable(address)
    }

    /// Whether the code of a program catches exceptions of C++.
    pub fn catches_exceptions(&self) -> bool {
        self.mapped().catches_exceptions() || self.elf.catches_exceptions()
    }

    /// Where the implementations of an indirect function of a program begin; None: no such function is there.
    pub fn implementations(&self, address: Address) -> Option<Vec<Address>> {
        self.mapped().implementations(address)
    }

    /// Bytes of a pointer: 8, or 4 in a 32-bit program.
    pub fn word(&self) -> u8 {
        self.debug().map_or(8, DebugInfo::word)
    }

    /// Where the variables of a program are that each thread has its own of.
    pub fn thread_block(&self) -> Option<ThreadBlock> {
        self.mapped().thread_block()
    }

    /// Whether it is a program that Go's compiler has made, or has code of one.
    pub fn is_go(&self) -> bool {
        [".go.buildinfo", ".gopclntab", ".note.go.buildid"].iter().any(|name| self.mapped().has_section(name))
    }

    /// The debug information, opened when first asked for.
    pub fn debug(&self) -> Result<&DebugInfo, debuginfo::Error> {
        let base = self.base.as_ref().map(|base| &*base.elf);
        self.debug
            .get_or_init(|| match self.kind {
                Kind::Program => DebugInfo::of_program(self.elf.clone(), self.mapped.clone(), self.cache.clone()),
                _ => DebugInfo::open(self.elf.clone(), self.cache.clone(), base),
            })
            .as_ref()
            .map_err(Clone::clone)
    }
}
