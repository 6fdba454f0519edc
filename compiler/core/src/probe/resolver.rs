// SPDX-License-Identifier: GPL-2.0-or-later

//! The target kernel as probe families see it, and the objects that probes are in.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::PointError;
use super::lines::FunctionStarts;
use crate::program::{ProgramId, Target, TargetId, UnwinderPlace, UserProgram};
use spile_debuginfo::target::{Kernel, Looked, Object, Programs, TargetError};
use spile_debuginfo::{DebugInfo, FunctionPattern, Unwinder};
use spile_source::Span;
use spile_source::diagnostic::Diagnostic;

/// Whether a module's name is the file name of a shared library, as `libc.so.6`.
pub fn is_shared_library(name: &str) -> bool {
    !name.contains('/') && (name.ends_with(".so") || name.contains(".so."))
}

/// An object, and the pattern of its files.
type FilesOf = (*const Object, Option<String>);

/// The process of `process` alone.
pub struct OwnProcess {
    /// What it runs: the program of the command of `-c`, or of the process of `-x`; or why that cannot be found.
    pub program: Result<PathBuf, Rc<TargetError>>,
    /// Of `-x`. None: it has not started.
    pub pid: Option<i64>,
    /// Where it was looked for.
    pub looked: Looked,
}

/// Answers queries about the target kernel, and collects the objects that probes are in.
pub struct Resolver<'k> {
    kernel: Option<&'k Kernel>,
    release: String,
    targets: Vec<Target>,
    /// Programs and libraries in user space.
    programs: Option<&'k Programs>,
    used_programs: Vec<UserProgram>,
    unwinders: Vec<UnwinderPlace>,
    follows: bool,
    begins: bool,
    own_process: Option<OwnProcess>,
    anchor_address: Option<u64>,
    /// Addresses without debug information may be probed.
    guru: bool,
    /// Files with the types of headers that casts name, by the names as they are written: `<sys/time.h>`.
    /// None: no headers have been compiled.
    headers: Option<HashMap<String, PathBuf>>,
    /// `.callee` counts whoever calls it.
    any_caller: bool,
    names_only: bool,
    pub(in crate::probe) left_out: Vec<String>,
    warnings: Vec<Diagnostic>,
    /// The kernel's debug information, if available.
    at_hand: OnceCell<Option<Rc<Object>>>,
    /// Programs that were looked at for exceptions that they catch.
    looked_at: Vec<Rc<Object>>,
    /// Where functions begin, by object and pattern of their files. The object is kept so that its address stays its own.
    function_starts: HashMap<FilesOf, (Rc<Object>, Rc<FunctionStarts>)>,
}

impl<'k> Resolver<'k> {
    /// Without a kernel, only probes that need none resolve; `release` is for messages.
    pub fn new(kernel: Option<&'k Kernel>, release: &str) -> Resolver<'k> {
        Resolver {
            kernel,
            release: release.to_string(),
            targets: Vec::new(),
            programs: None,
            used_programs: Vec::new(),
            unwinders: Vec::new(),
            follows: false,
            begins: false,
            own_process: None,
            anchor_address: None,
            guru: true,
            headers: None,
            any_caller: false,
            names_only: false,
            left_out: Vec::new(),
            warnings: Vec::new(),
            at_hand: OnceCell::new(),
            looked_at: Vec::new(),
            function_starts: HashMap::new(),
        }
    }

    /// The same for a script that is to be run, in guru mode or not.
    #[must_use]
    pub fn with_guru(mut self, guru: bool) -> Resolver<'k> {
        self.guru = guru;
        self
    }

    /// The same with programs and libraries in user space; `own_process`: the session's, if it has one.
    #[must_use]
    pub fn with_programs(mut self, programs: &'k Programs, own_process: Option<OwnProcess>) -> Resolver<'k> {
        self.programs = Some(programs);
        self.own_process = own_process;
        self
    }

    /// Programs and libraries. None where the caller has given none.
    pub(in crate::probe) fn programs(&self) -> Option<&'k Programs> {
        self.programs
    }

    /// What the session's own process runs: the command of `-c`, or the program of the process of `-x`.
    ///
    /// # Errors
    ///
    /// The script's session has no process of its own, or its program cannot be found.
    pub(in crate::probe) fn own_program(&self, component: Span) -> Result<PathBuf, PointError> {
        self.depends_on_own_process();
        match &self.own_process {
            Some(own) => own.program.clone().map_err(|error| PointError::Target { component, error }),
            None => Err(PointError::NoCommand { component }),
        }
    }

    /// The process of `-x`.
    pub(in crate::probe) fn own_pid(&self) -> Option<i64> {
        self.depends_on_own_process();
        self.own_process.as_ref()?.pid
    }

    /// What is resolved would be something else with another `-c` or `-x`, or without.
    fn depends_on_own_process(&self) {
        let looked = self.own_process.as_ref().map(|own| own.looked.clone()).unwrap_or_default();
        if let Some(programs) = self.programs {
            programs.depends_on(&Looked { own_process: true, ..looked });
        }
    }

    /// The path of a file where the script runs.
    fn installed(&self, path: &Path) -> String {
        let installed = self.programs.map_or_else(|| path.to_path_buf(), |programs| programs.installed(path));
        installed.display().to_string()
    }

    /// The program's number; it is added when first used.
    pub(crate) fn program(&mut self, object: &Object) -> ProgramId {
        let path = self.installed(object.path());
        let build_id = object.build_id().to_vec();
        self.add_program(UserProgram { path, build_id, code: object.code_sum(), unwinds_only: false })
    }

    /// The number of that program or of one like it, which is for probes if one of the two is.
    fn add_program(&mut self, program: UserProgram) -> ProgramId {
        let UserProgram { path, build_id, code, unwinds_only } = &program;
        let is_known = |known: &UserProgram| known.path == *path && known.build_id == *build_id && known.code == *code;
        let index = self.used_programs.iter().position(is_known);
        if let Some(known) = index.and_then(|index| self.used_programs.get_mut(index)) {
            known.unwinds_only &= unwinds_only;
        }
        let index = index.unwrap_or_else(|| {
            self.used_programs.push(program);
            self.used_programs.len() - 1
        });
        ProgramId(index as u32)
    }

    /// The same of a program of which only the path matters: whatever its build.
    pub(in crate::probe) fn program_at(&mut self, path: &Path) -> ProgramId {
        let path = self.installed(path);
        self.add_program(UserProgram { path, build_id: Vec::new(), code: None, unwinds_only: false })
    }

    /// Returns are probed in processes that use this.
    pub(in crate::probe) fn unwinder(&mut self, unwinder: &Unwinder) {
        let Unwinder { build_id, code, .. } = unwinder;
        let path = self.installed(&unwinder.path);
        let program =
            self.add_program(UserProgram { path, build_id: build_id.clone(), code: *code, unwinds_only: true });
        for (places, catches) in [(&unwinder.searches, false), (&unwinder.catches, true)] {
            let places = places.iter().map(|offset| UnwinderPlace { program, offset: *offset, catches });
            let added: Vec<UnwinderPlace> = places.filter(|place| !self.unwinders.contains(place)).collect();
            self.unwinders.extend(added);
        }
    }

    /// All of them.
    pub fn take_unwinders(&mut self) -> Vec<UnwinderPlace> {
        std::mem::take(&mut self.unwinders)
    }

    /// A probe is for the session's processes: the runtime keeps a list of those that descend from its own one.
    pub(in crate::probe) fn follows(&mut self) {
        self.follows = true;
    }

    /// Whether one is.
    pub fn is_following(&self) -> bool {
        self.follows
    }

    /// A probe is for processes that begin: the runtime tells those that ran before the session.
    pub(in crate::probe) fn begins(&mut self) {
        self.begins = true;
    }

    /// Whether one is.
    pub fn has_beginnings(&self) -> bool {
        self.begins
    }

    /// Expressions use addresses of the object: the runtime has to know it.
    pub fn uses(&mut self, object: &Object) -> Result<(), PointError> {
        match object.is_program() {
            true => _ = self.program(object),
            false => _ = self.target(object)?,
        }
        Ok(())
    }

    /// The programs and libraries that sites are in.
    pub fn take_programs(&mut self) -> Vec<UserProgram> {
        std::mem::take(&mut self.used_programs)
    }

    /// The same for `-DSTAP_CALLEE_MATCHALL`: callees count whoever calls them.
    pub fn with_any_caller(mut self, any_caller: bool) -> Resolver<'k> {
        self.any_caller = any_caller;
        self
    }

    /// The same with files that hold the types of headers, of all that compile.
    pub fn with_headers(mut self, headers: HashMap<String, PathBuf>) -> Resolver<'k> {
        self.headers = Some(headers);
        self
    }

    /// The types of the headers with these names; None where only the kernel's are available.
    pub fn header(&self, name: &str) -> Option<Rc<Object>> {
        let path = self.headers.as_ref()?.get(name)?;
        self.kernel?.header(path).ok()
    }

    /// Whether headers have been compiled: those that [`Resolver::header`] does not have do not compile then.
    pub fn compiles_headers(&self) -> bool {
        self.headers.is_some()
    }

    /// Whether callees are probed whoever calls them (see [`Resolver::with_any_caller`]).
    pub(in crate::probe) fn any_caller(&self) -> bool {
        self.any_caller
    }

    /// From now on only the spellings of sites are wanted: of those that are spelled the same, as the inlined copies of a function
    /// are, one is enough.
    pub fn want_names_only(&mut self) {
        self.names_only = true;
    }

    /// Whether that is so.
    pub(in crate::probe) fn names_only(&self) -> bool {
        self.names_only
    }

    /// Whether the script is compiled with `-g`.
    pub(in crate::probe) fn is_guru(&self) -> bool {
        self.guru
    }

    /// The module of that name or path; a path that is not one of a module's file is a program's or library's, a name like
    /// `libc.so.6` that of a library of the system, and a name that no module has that of a program in `$PATH`.
    pub fn module(&self, name: &str) -> Result<Rc<Object>, TargetError> {
        if let Some(programs) = self.programs.filter(|_| name.contains('/') && !name.contains(".ko")) {
            return programs.open(&programs.find(name)?);
        }
        if let Some(programs) = self.programs.filter(|_| is_shared_library(name)) {
            return programs.open(&programs.library(name)?);
        }
        let found = match self.kernel {
            Some(kernel) => kernel.module(name),
            None => Err(TargetError::no_kernel(&self.release)),
        };
        match (found, self.programs) {
            (Err(error @ TargetError::NoSuchModule { .. }), Some(programs)) => {
                programs.find(name).map_or(Err(error), |path| programs.open(&path))
            }
            (found, _) => found,
        }
    }

    /// The kernel if its debug information is available: for families that can do without it.
    pub(in crate::probe) fn open_kernel(&self) -> Option<Rc<Object>> {
        self.at_hand.get_or_init(|| self.kernel?.vmlinux_here()).clone()
    }

    /// A hint if answers came only from BTF: what is not known then, and which package has it.
    pub fn without_dwarf(&self) -> Option<String> {
        let split = self.programs.map(Programs::missing_parts).unwrap_or_default();
        if let Some((name, file)) = split.first() {
            return Some(format!(
                "a part of the debug information of {name} is in files of its own (-gsplit-dwarf), of which {file} was not found, or belongs to another build: it is looked for in the directory where it was compiled and beside the program, and in {name}.dwp"
            ));
        }
        let programs = self.programs.map(Programs::without_debug_info).unwrap_or_default();
        if !programs.is_empty() {
            return Some(format!(
                "there is no debug information of {}, and its symbols have only the addresses of functions: install its debug package (PACKAGE-dbgsym or -dbg), or let $DEBUGINFOD_URLS name servers",
                programs.join(", ")
            ));
        }
        let kernel = self.kernel?;
        let objects = kernel.without_dwarf();
        let hints: String = kernel.dwarf_hints().iter().map(|hint| format!("; {hint}")).collect();
        (!objects.is_empty()).then(|| {
            let objects = objects.join(", ");
            format!("there is no debug information of {objects}, and BTF does not describe inlined functions, .isra parts, lines or local variables{hints}")
        })
    }

    /// The target kernel. An error without one.
    pub fn kernel(&self) -> Result<&'k Kernel, PointError> {
        self.kernel.ok_or_else(|| PointError::NoKernel { release: self.release.clone() })
    }

    /// The target's number; it is added on first use.
    pub fn target(&mut self, object: &Object) -> Result<TargetId, PointError> {
        let name = if object.is_kernel() { String::new() } else { object.name().replace('-', "_") };
        if let Some(index) = self.targets.iter().position(|target| target.name == name) {
            return Ok(TargetId(index as u32));
        }
        // A boot image has no symbols: nothing in it is attached by address.
        if object.is_kernel() && object.has_symbols() {
            let address = object.symbol_address("register_kprobe");
            self.anchor_address = Some(address.ok_or(PointError::NoAnchor)?);
        }
        self.targets.push(Target {
            name,
            build_id: object.build_id().to_vec(),
            build_id_address: object.build_id_address(),
            path: object.path().display().to_string(),
        });
        Ok(TargetId(self.targets.len() as u32 - 1))
    }

    /// Source lines of the kernel and of the modules that are targets, by the targets' names. Objects without are left out:
    /// their addresses are shown as numbers.
    pub fn line_tables(&mut self) -> Vec<(String, Vec<u8>)> {
        let Some(kernel) = self.kernel else { return Vec::new() };
        let mut tables = Vec::new();
        if let Ok(vmlinux) = kernel.vmlinux()
            && let Some(table) = line_table(&vmlinux)
            && self.target(&vmlinux).is_ok()
        {
            tables.push((String::new(), table));
        }
        for name in self.targets.iter().map(|target| target.name.clone()).filter(|name| !name.is_empty()) {
            let table = self.module(&name).ok().and_then(|module| line_table(&module));
            tables.extend(table.map(|table| (name, table)));
        }
        tables
    }

    /// Where the functions of the pattern's files begin. A listing asks for each function of a file.
    pub(in crate::probe) fn function_starts(
        &mut self,
        object: &Rc<Object>,
        debug: &DebugInfo,
        pattern: &FunctionPattern,
    ) -> Result<Rc<FunctionStarts>, spile_debuginfo::Error> {
        let key = (Rc::as_ptr(object), pattern.file.clone());
        if let Some((_, known)) = self.function_starts.get(&key) {
            return Ok(Rc::clone(known));
        }
        let function_starts = Rc::new(FunctionStarts::new(debug, pattern)?);
        self.function_starts.insert(key, (Rc::clone(object), Rc::clone(&function_starts)));
        Ok(function_starts)
    }

    /// Records that no probe is possible at `what`: a line for `-v`.
    pub(in crate::probe) fn skip(&mut self, what: &str, why: &str) {
        self.left_out.push(format!("{what}: {why}"));
    }

    /// The places matched by a wildcard where no probe is possible, with the reasons, since the last call.
    pub fn take_skipped(&mut self) -> Vec<String> {
        std::mem::take(&mut self.left_out)
    }

    /// Records a warning about a point.
    pub(in crate::probe) fn warn(&mut self, warning: Diagnostic) {
        self.warnings.push(warning);
    }

    /// Whether it is the first call for that object in a script that is compiled: one look for exceptions, and one warning, is enough.
    pub(in crate::probe) fn is_first_look_at(&mut self, object: &Rc<Object>) -> bool {
        let is_first = !self.names_only && !self.looked_at.iter().any(|known| Rc::ptr_eq(known, object));
        if is_first {
            self.looked_at.push(Rc::clone(object));
        }
        is_first
    }

    /// The warnings since the last call.
    pub fn take_warnings(&mut self) -> Vec<Diagnostic> {
        std::mem::take(&mut self.warnings)
    }

    /// The objects that sites are in, and the link-time address of `register_kprobe` if the kernel is one of them.
    pub fn take_targets(&mut self) -> (Vec<Target>, Option<u64>) {
        (std::mem::take(&mut self.targets), self.anchor_address)
    }
}

fn line_table(object: &Object) -> Option<Vec<u8>> {
    object.debug().ok()?.line_table().ok()?
}
