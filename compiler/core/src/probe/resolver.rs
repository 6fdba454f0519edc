// SPDX-License-Identifier: GPL-2.0-or-later

//! The target kernel as probe families see it, and the objects that probes are in.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;

use super::PointError;
use crate::program::{Target, TargetId};
use spile_debuginfo::target::{Kernel, Object, TargetError};

/// Answers queries about the target kernel, and collects the objects that probes are in.
pub struct Resolver<'k> {
    kernel: Option<&'k Kernel>,
    release: String,
    targets: Vec<Target>,
    anchor_address: Option<u64>,
    /// Addresses without debug information may be probed.
    guru: bool,
    /// Files with the types of headers that casts name, by the names as written: `<sys/time.h>`.
    headers: HashMap<String, PathBuf>,
    /// `.callee` counts whoever calls it.
    any_caller: bool,
    pub(in crate::probe) left_out: Vec<String>,
    /// The kernel's debug information, if available.
    at_hand: OnceCell<Option<Rc<Object>>>,
}

impl<'k> Resolver<'k> {
    /// Without a kernel, only probes that need none resolve; `release` is for messages.
    pub fn new(kernel: Option<&'k Kernel>, release: &str) -> Resolver<'k> {
        Resolver {
            kernel,
            release: release.to_string(),
            targets: Vec::new(),
            anchor_address: None,
            guru: true,
            headers: HashMap::new(),
            any_caller: false,
            left_out: Vec::new(),
            at_hand: OnceCell::new(),
        }
    }

    /// The same for a script that is to be run, in guru mode or not.
    #[must_use]
    pub fn with_guru(mut self, guru: bool) -> Resolver<'k> {
        self.guru = guru;
        self
    }

    /// The same for `-DSTAP_CALLEE_MATCHALL`: callees count whoever calls them.
    pub fn with_any_caller(mut self, any_caller: bool) -> Resolver<'k> {
        self.any_caller = any_caller;
        self
    }

    /// The same with files that contain the types of headers.
    pub fn with_headers(mut self, headers: HashMap<String, PathBuf>) -> Resolver<'k> {
        self.headers = headers;
        self
    }

    /// The types of the headers with these names; None where only the kernel's are available.
    pub fn header(&self, name: &str) -> Option<Rc<Object>> {
        let path = self.headers.get(name)?;
        self.kernel?.module(&path.to_string_lossy()).ok()
    }

    /// Whether callees are probed whoever calls them (see [`Resolver::with_any_caller`]).
    pub(in crate::probe) fn any_caller(&self) -> bool {
        self.any_caller
    }

    /// Whether the script is compiled with `-g`.
    pub(in crate::probe) fn is_guru(&self) -> bool {
        self.guru
    }

    /// The module of that name or path.
    pub fn module(&self, name: &str) -> Result<Rc<Object>, TargetError> {
        match self.kernel {
            Some(kernel) => kernel.module(name),
            None => Err(TargetError::no_kernel(&self.release)),
        }
    }

    /// The kernel if its debug information is available: for families that can do without it.
    pub(in crate::probe) fn kernel_at_hand(&self) -> Option<Rc<Object>> {
        self.at_hand.get_or_init(|| self.kernel?.vmlinux_here()).clone()
    }

    /// A hint where answers came from BTF alone: what is not known then, and which package has it.
    pub fn without_dwarf(&self) -> Option<String> {
        let kernel = self.kernel?;
        let objects = kernel.without_dwarf();
        let hints: String = kernel.how_to_get_dwarf().iter().map(|hint| format!("; {hint}")).collect();
        (!objects.is_empty()).then(|| {
            let objects = objects.join(", ");
            format!("there is no debug information of {objects}, and BTF tells neither of inlined functions, .isra parts and lines nor of local variables{hints}")
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

    /// Records that no probe is possible at `what`: a line for `-v`.
    pub(in crate::probe) fn leave_out(&mut self, what: &str, why: &str) {
        self.left_out.push(format!("{what}: {why}"));
    }

    /// The places matched by a wildcard where no probe is possible, with the reasons, since the last call.
    pub fn take_left_out(&mut self) -> Vec<String> {
        std::mem::take(&mut self.left_out)
    }

    /// The objects that sites are in, and the link-time address of `register_kprobe` if the kernel is one of them.
    pub fn take_targets(&mut self) -> (Vec<Target>, Option<u64>) {
        (std::mem::take(&mut self.targets), self.anchor_address)
    }
}

fn line_table(object: &Object) -> Option<Vec<u8>> {
    object.debug().ok()?.line_table().ok()?
}
